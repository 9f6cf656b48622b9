import { deepEqual, equal } from "node:assert/strict";
import plugin from "./layers.ts";

const ROOT = new URL("../../", import.meta.url);

function lint(file: string, source: string): Deno.lint.Diagnostic[] {
  const path = decodeURIComponent(new URL(file, ROOT).pathname);
  return Deno.lint.runPlugin(plugin, path, source);
}

function messages(file: string, source: string): string[] {
  return lint(file, source).map(({ message }) => message);
}

/** How many of the imports are refused, each on its own. */
function refused(file: string, ...specifiers: string[]): string[] {
  return specifiers.filter((specifier) => lint(file, `import "${specifier}";`).length > 0);
}

Deno.test("layers: the core imports itself and src/driver/", () => {
  const allowed = ["./errors.ts", "./claim/lease.ts", "./driver/driver.ts", "npm:@logtape/logtape"];
  deepEqual(refused("src/queue.ts", ...allowed), []);
  deepEqual(refused("src/check/check_tables.ts", "../claim/lease.ts", "../driver/mod.ts"), []);
});

Deno.test("layers: the core imports no database, extension or real time", () => {
  const outside = [
    "./sqlite/mod.ts",
    "./postgres/mod.ts",
    "./mysql/mod.ts",
    "./broadcast/mod.ts",
    "./feed/mod.ts",
    "./driver/real_time.ts",
    "../mod.ts",
    "@holdfast/inbox",
    "@holdfast/inbox/sqlite",
  ];
  deepEqual(refused("src/queue.ts", ...outside), outside);
  deepEqual(refused("src/claim/lease.ts", "../sqlite/mod.ts"), ["../sqlite/mod.ts"]);
});

Deno.test("layers: src/driver/ imports itself and errors.ts only", () => {
  deepEqual(refused("src/driver/driver.ts", "./dialect.ts", "../errors.ts"), []);
  const outside = ["../queue.ts", "../clock.ts", "../sqlite/mod.ts", "../feed/mod.ts"];
  deepEqual(refused("src/driver/driver.ts", ...outside), outside);
});

Deno.test("layers: a database imports itself, src/driver/ and errors.ts only", () => {
  const allowed = ["./dialect.ts", "../driver/driver.ts", "../driver/real_time.ts", "../errors.ts"];
  const outside = ["../queue.ts", "../clock.ts", "../claim/lease.ts", "../feed/mod.ts"];
  for (const database of ["sqlite", "postgres", "mysql"]) {
    const others = ["sqlite", "postgres", "mysql"].filter((other) => other !== database)
      .map((other) => `../${other}/dialect.ts`);
    const file = `src/${database}/session.ts`;
    deepEqual(refused(file, ...allowed, ...outside, ...others), [...outside, ...others]);
  }
});

Deno.test("layers: only driver.ts and client files of its database import a client", () => {
  const postgres = ["postgres", "npm:postgres", "npm:postgres@^3.4.0"];
  const mysql = ["mysql2", "mysql2/promise", "npm:mysql2@^3/promise", "npm:/mysql2@3"];
  const sqlite = ["node:sqlite", "jsr:@db/sqlite@^0.13.0", "@db/sqlite"];
  const clients = [...postgres, ...mysql, ...sqlite];
  deepEqual(refused("src/postgres/driver.ts", ...clients), [...mysql, ...sqlite]);
  deepEqual(refused("src/mysql/driver.ts", ...clients), [...postgres, ...sqlite]);
  deepEqual(refused("src/sqlite/node_client.ts", ...clients), [...postgres, ...mysql]);
  for (const file of ["mod.ts", "src/queue.ts", "src/driver/driver.ts", "src/sqlite/mod.ts"]) {
    deepEqual(refused(file, ...clients), clients);
  }
  deepEqual(refused("src/log.ts", "npm:postgres-interval", "postgres-array"), []);
});

Deno.test("layers: the library imports nothing outside src/", () => {
  for (
    const file of ["src/queue.ts", "src/driver/driver.ts", "src/sqlite/mod.ts", "src/feed/a.ts"]
  ) {
    for (const folder of ["testing", "examples", "bench", "tools"]) {
      const specifier = new URL(`/${folder}/mod.ts`, "file:///").pathname;
      const up = "../".repeat(file.split("/").length - 1) + specifier.slice(1);
      deepEqual(refused(file, up), [up]);
    }
  }
  deepEqual(refused("mod.ts", "./testing/mod.ts"), ["./testing/mod.ts"]);
  deepEqual(refused("mod.ts", "./src/queue.ts", "./src/driver/dialect.ts"), []);
  deepEqual(refused("mod.ts", "./src/sqlite/mod.ts"), ["./src/sqlite/mod.ts"]);
});

Deno.test("layers: every way to import counts", () => {
  const ways = [
    `import { a } from "./sqlite/mod.ts";`,
    `import type { A } from "./sqlite/mod.ts";`,
    `export { a } from "./sqlite/mod.ts";`,
    `export * from "./sqlite/mod.ts";`,
    `await import("./sqlite/mod.ts");`,
    "await import(`./sqlite/mod.ts`);",
    `type A = import("./sqlite/mod.ts").A;`,
  ];
  deepEqual(ways.filter((source) => lint("src/queue.ts", source).length !== 1), []);
  deepEqual(lint("src/queue.ts", "export const a = 1; await import(name);"), []);
});

Deno.test("layers: tests, examples, tools and the test harness are free", () => {
  for (
    const file of [
      "src/queue_test.ts",
      "src/sqlite/driver_test.ts",
      "testing/mod.ts",
      "examples/a.ts",
      "tools/a.ts",
      "bench/a.ts",
    ]
  ) {
    const source = `import "../testing/mod.ts"; import "../mod.ts"; import "npm:postgres";
      setTimeout(() => {}, Date.now());`;
    deepEqual(lint(file, source), [], file);
  }
});

Deno.test("layers: the message says who imports what, and the hint the fix", () => {
  const [diagnostic] = lint("src/queue.ts", `import "./sqlite/mod.ts";`);
  equal(diagnostic?.id, "holdfast/layers");
  equal(diagnostic?.message, "src/queue.ts (core) imports src/sqlite/mod.ts (sqlite)");
  equal(diagnostic?.hint, "Reach a database through Driver and Dialect of src/driver/ only");
});

Deno.test("clock: time, timers and random values of the globals are refused", () => {
  const uses: Record<string, string> = {
    "setTimeout(f, 1)": "setTimeout",
    "setInterval(f, 1)": "setInterval",
    "clearTimeout(t)": "clearTimeout",
    "clearInterval(t)": "clearInterval",
    "const later = setTimeout": "setTimeout",
    "const timers = { setTimeout }": "setTimeout",
    "globalThis.setTimeout(f, 1)": "setTimeout",
    "(globalThis as Any).setTimeout(f, 1)": "setTimeout",
    'globalThis["setTimeout"](f, 1)': "setTimeout",
    "Date.now()": "Date.now",
    "Date?.now()": "Date.now",
    "globalThis.Date.now()": "Date.now",
    "const { now } = Date": "Date.now",
    "new Date()": "new Date() without a value",
    "Date()": "Date",
    "const D = Date": "Date",
    "Math.random()": "Math.random",
    'Math["random"]()': "Math.random",
    "const { random } = Math": "Math.random",
    "performance.now()": "performance.now",
    "crypto.randomUUID()": "crypto.randomUUID",
    "crypto.getRandomValues(a)": "crypto.getRandomValues",
    "AbortSignal.timeout(1)": "AbortSignal.timeout",
    "Temporal.Now.instant()": "Temporal.Now",
    'import { setTimeout as s } from "node:timers/promises"': "setTimeout of node:timers/promises",
    'import { randomUUID } from "node:crypto"': "randomUUID of node:crypto",
  };
  for (const [source, what] of Object.entries(uses)) {
    deepEqual(messages("src/queue.ts", source), [`src/queue.ts uses ${what}`], source);
  }
});

Deno.test("clock: what takes no time from the clock is free", () => {
  const uses = [
    "new Date(value)",
    "Date.UTC(2026, 0)",
    "Date.parse(text)",
    "value instanceof Date",
    "let d: Date | undefined",
    "let t: ReturnType<typeof setTimeout>",
    "interface Timers { setTimeout(f: () => void): void }",
    "const options = { setTimeout: 1, Date: 2 }",
    "class A { setTimeout() {} }",
    "timers.setTimeout(f, 1)",
    "Math.max(1, 2)",
    "performance.mark(name)",
    "crypto.subtle.digest(a, b)",
    "AbortSignal.any([a])",
    'import { createHash } from "node:crypto"',
  ];
  for (const source of uses) deepEqual(messages("src/queue.ts", source), [], source);
});

Deno.test("clock: clock.ts and driver/real_time.ts are the sources, and the hint names them", () => {
  const source = "setTimeout(f, Math.random())";
  deepEqual(lint("src/clock.ts", source), []);
  deepEqual(lint("src/driver/real_time.ts", source), []);
  const sources: Record<string, string> = {
    "src/claim/lease.ts": "src/clock.ts",
    "src/feed/follower.ts": "src/clock.ts",
    "src/driver/backoff.ts": "src/driver/real_time.ts",
    "src/postgres/session.ts": "src/driver/real_time.ts",
  };
  for (const [file, name] of Object.entries(sources)) {
    const hint = `Take time, timers and random values from ${name}, and add there what it lacks`;
    deepEqual(lint(file, source).map((found) => found.hint), [hint, hint]);
  }
});

Deno.test("portable: what is published uses no Deno", () => {
  const uses = [
    "const text = Deno.readTextFileSync(name);",
    "export function pid(): number { return globalThis.Deno.pid; }",
    'export const pid = globalThis["Deno"]?.pid;',
    "const { pid } = Deno;",
    "export const has = typeof Deno;",
    "export type Command = Deno.Command;",
    "export let runtime: typeof Deno;",
    "export let pid: typeof Deno.pid;",
  ];
  for (const file of ["mod.ts", "src/queue.ts", "src/sqlite/driver.ts", "testing/trace.ts"]) {
    const wanted = [`${file} uses Deno, which other runtimes lack`];
    for (const use of uses) deepEqual(messages(file, use), wanted, use);
  }
});

Deno.test("portable: Deno may be used where it may be missing, and where nothing is published", () => {
  const guarded = "const { Deno: deno } = globalThis as unknown as { readonly Deno?: Serving };";
  deepEqual(messages("src/http_service.ts", guarded), []);
  deepEqual(messages("testing/trace.ts", "(globalThis as { Deno?: Serving }).Deno?.serve();"), []);
  const free = ["src/queue_test.ts", "src/queue_for_test.ts", "tools/run_tests.ts"];
  for (const folder of ["conformance", "programs", "runners"]) free.push(`testing/${folder}/a.ts`);
  for (const file of free) deepEqual(messages(file, "Deno.exit();"), []);
});
