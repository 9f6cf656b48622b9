import assert from "node:assert/strict";
import * as mod from "./mod.ts";
import { HoldfastError } from "./mod.ts";

/** What `deno info --json` says of an entry point. */
interface ModuleGraph {
  readonly roots: readonly string[];
  readonly modules: readonly {
    readonly specifier: string;
    readonly dependencies?: readonly {
      readonly specifier: string;
      readonly code?: { readonly specifier?: string };
      readonly isDynamic?: boolean;
    }[];
  }[];
}

async function graphOf(entry: string): Promise<ModuleGraph> {
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", entry],
    cwd: import.meta.dirname!,
    stderr: "inherit",
  }).output();
  assert.equal(code, 0);
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** Every module that loading the entry point loads, types and dynamic imports left out. */
function loadedBy({ roots, modules }: ModuleGraph): string[] {
  const bySpecifier = new Map(modules.map((module) => [module.specifier, module]));
  const loaded = new Set(roots);
  for (const specifier of loaded) {
    for (const { code, isDynamic } of bySpecifier.get(specifier)?.dependencies ?? []) {
      if (code?.specifier !== undefined && !isDynamic) loaded.add(code.specifier);
    }
  }
  return [...loaded];
}

const CLIENTS = /sqlite|postgres|mysql|maria|\/feed\/|\/broadcast\/|\/testing\//;
/** What writes tables for migrations: text, and nothing that reaches a database. */
const DDL = /^file:\/\/\/src\/(sqlite|postgres|mysql)\/(?!.*(mod|driver|client|pool|session)\.ts$)/;

Deno.test("mod.ts pulls in no database client, and of databases only what writes tables", async () => {
  const graph = await graphOf("mod.ts");
  const all = graph.modules.map(({ specifier }) => specifier)
    .map((specifier) => specifier.replace(import.meta.dirname!, ""));
  assert(all.length > 20, "the graph was read");
  const ofDatabases = all.filter((specifier) => CLIENTS.test(specifier));
  assert(ofDatabases.length < 20, `${ofDatabases.length} modules of databases`);
  assert.deepEqual(ofDatabases.filter((specifier) => !DDL.test(specifier)), []);
  const packages = loadedBy(graph).filter((specifier) => /^(npm|jsr|https?):/.test(specifier));
  assert.deepEqual(packages.map((each) => each.replace(/@[\d^.~]+.*$/, "")), [
    "npm:@logtape/logtape",
  ]);
});

Deno.test("the core loads nothing of node: but what every runtime has", async () => {
  const builtIn = loadedBy(await graphOf("mod.ts")).filter((each) => each.startsWith("node:"));
  assert.deepEqual(builtIn.toSorted(), ["node:async_hooks"]);
});

Deno.test("the SQLite entry point loads node:sqlite, and @db/sqlite only when asked to", async () => {
  const loaded = loadedBy(await graphOf("src/sqlite/mod.ts"));
  assert(loaded.includes("node:sqlite"));
  assert.deepEqual(loaded.filter((each) => /^(npm|jsr):|jsr\.io/.test(each)), []);
});

Deno.test("every error class has a stable code, its own name, and keeps its cause", () => {
  const codes: Record<string, string> = {
    AlreadySettledError: "already_settled",
    ClosedError: "closed",
    DeclarationError: "declaration",
    DriverError: "driver",
    LeaseLostError: "lease_lost",
    PayloadError: "payload",
    PublishError: "publish",
    SchemaError: "schema",
    ShutdownError: "shutdown",
    TimeoutError: "timeout",
  };
  const classes = Object.entries(mod).filter(([name]) =>
    name.endsWith("Error") && name !== "HoldfastError"
  );
  assert.deepEqual(classes.map(([name]) => name).toSorted(), Object.keys(codes));
  const cause = new Error("the client's own");
  const { SchemaError: _, DriverError: __, ...plain } = mod;
  for (const [name, each] of Object.entries(plain)) {
    if (!(name in codes)) continue;
    const ErrorClass = each as new (message: string, options?: ErrorOptions) => HoldfastError;
    const error = new ErrorClass("Cannot", { cause });
    assert(error instanceof HoldfastError && error instanceof Error);
    assert.deepEqual(
      [error.name, error.code, error.message, error.cause],
      [name, codes[name], "Cannot", cause],
    );
    assert.match(String(error), new RegExp(`^${name}: Cannot$`));
  }
  const driverError = new mod.DriverError("conflict", "Busy", { cause });
  assert.deepEqual(
    [driverError.name, driverError.code, driverError.kind, driverError.cause],
    ["DriverError", "driver", "conflict", cause],
  );
});

Deno.test("a SchemaError lists every problem with its place and its fix", () => {
  const problems = [
    { table: "jobs", problem: "it is a view", fix: "describe its table" },
    {
      table: "jobs",
      column: "attempt",
      subscription: "mails",
      problem: "the column does not exist",
      fix: "add it",
    },
  ];
  const error = new mod.SchemaError(problems);
  assert(error instanceof HoldfastError);
  assert.deepEqual([error.name, error.code], ["SchemaError", "schema"]);
  assert.deepEqual(error.problems, problems);
  assert.equal(
    error.message,
    "Cannot use the tables as described:\n" +
      '- "jobs": it is a view; describe its table\n' +
      '- "jobs"."attempt" (subscription "mails"): the column does not exist; add it',
  );
});
