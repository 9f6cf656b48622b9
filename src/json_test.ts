import assert from "node:assert/strict";
import * as v from "valibot";
import { z } from "zod";
import { TestApp } from "../testing/mod.ts";
import { App } from "./app.ts";
import { Broker } from "./broker.ts";
import { PayloadError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import { json } from "./json.ts";
import type { Payload } from "./payload.ts";
import { sqlite } from "./sqlite/mod.ts";
import type { StandardSchema } from "./standard_schema.ts";

const refused = (...parts: string[]) => (error: unknown): true => {
  assert(error instanceof PayloadError, String(error));
  for (const part of parts) assert(error.message.includes(part), error.message);
  return true;
};

Deno.test("a payload without a schema is stored as JSON text and read back", async () => {
  const payload = json<unknown>("body");
  assert.equal(payload.column, "body");
  assert.equal(payload.storage, "text");
  for (const message of [{ a: [1, "ü", null] }, [], "text", 5, true, null, { nul: "a\0b" }]) {
    const stored = await payload.encode(message as never);
    assert.equal(stored, JSON.stringify(message));
    assert.deepEqual(await payload.decode(stored), message);
  }
});

Deno.test("JSON that a column returns as bytes is read too", async () => {
  const payload = json<{ a: string }>("body");
  assert.deepEqual(await payload.decode(new TextEncoder().encode('{"a":"ü"}')), { a: "ü" });
  assert.throws(() => payload.decode(new Uint8Array([0x22, 0xff, 0x22])), TypeError);
});

Deno.test("a message without a JSON form is refused", () => {
  const payload = json<unknown>("body");
  for (const message of [undefined, () => 5, Symbol("s")]) {
    assert.throws(() => payload.encode(message as never), refused("has no JSON form"));
  }
  const circular: { self?: unknown } = {};
  circular.self = circular;
  for (const message of [circular, { big: 5n }]) {
    assert.throws(() => payload.encode(message as never), TypeError);
  }
});

Deno.test("text that is no JSON is refused", () => {
  for (const stored of ["", "{", "undefined", "'a'"]) {
    assert.throws(() => json("body").decode(stored), SyntaxError);
  }
});

interface In {
  at: string;
  copies?: number | undefined;
}
interface Out {
  at: Date;
  copies: number;
}

let runs = 0;
const toDate = (text: string): Date => {
  runs++;
  return new Date(text);
};
const isTime = (text: string): boolean => !Number.isNaN(Date.parse(text));
const later = async <T>(value: T): Promise<T> => {
  await crypto.subtle.digest("SHA-256", new Uint8Array(1)); // takes real time, and no timer
  return value;
};

const schemas: Record<string, Payload<In, Out>> = {
  Zod: json(
    "payload",
    z.object({ at: z.string().refine(isTime).transform(toDate), copies: z.number().default(1) }),
  ),
  "Zod, asynchronous": json(
    "payload",
    z.object({
      at: z.string().refine((text) => later(isTime(text))).transform(async (text) =>
        toDate(await later(text))
      ),
      copies: z.number().default(1),
    }),
  ),
  Valibot: json(
    "payload",
    v.object({
      at: v.pipe(v.string(), v.check(isTime), v.transform(toDate)),
      copies: v.optional(v.number(), 1),
    }),
  ),
  "Valibot, asynchronous": json(
    "payload",
    v.objectAsync({
      at: v.pipeAsync(
        v.string(),
        v.checkAsync((text) => later(isTime(text))),
        v.transformAsync(async (text) => toDate(await later(text))),
      ),
      copies: v.optional(v.number(), 1),
    }),
  ),
};

for (const [name, payload] of Object.entries(schemas)) {
  Deno.test(`the input is stored unchanged and the output delivered, ${name}`, async () => {
    const message = { at: "2026-01-31" };
    const stored = await payload.encode(message);
    assert.equal(stored, '{"at":"2026-01-31"}');
    assert.deepEqual(message, { at: "2026-01-31" }, "the caller's object is not changed");
    runs = 0;
    assert.deepEqual(await payload.decode(stored), { at: new Date("2026-01-31"), copies: 1 });
    assert.equal(runs, 1);
  });

  Deno.test(`a message that the schema refuses names the paths, ${name}`, async () => {
    const wrong = { at: 5, copies: "two" } as never;
    await assert.rejects(
      async () => await payload.encode(wrong),
      refused("The schema refuses it: at: ", "; copies: "),
    );
    await assert.rejects(async () => await payload.decode('{"at":5}'), refused("at: "));
    await assert.rejects(async () => await payload.decode('{"at":"no time"}'), refused("at: "));
    await assert.rejects(
      async () => await payload.decode("null"),
      refused("The schema refuses it"),
    );
  });

  Deno.test(`transforms and defaults run once between publish and handler, ${name}`, async () => {
    const jobs = inbox("jobs", { id: "id", lockedUntil: "locked_until", payload });
    const heard: Out[] = [];
    const subscription = jobs.queue().subscribe((message) => void heard.push(message));
    const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(subscription);
    await using app = await TestApp.start(new App({ name: "app" }).withBroker(broker));
    await app.publish(jobs.queue(), { at: "2026-01-31" });
    await app.settled();
    assert.deepEqual(heard, [{ at: new Date("2026-01-31"), copies: 1 }]);
    assert.deepEqual(app.subscriber(subscription).received(), heard);

    await assert.rejects(
      app.publish(jobs.queue(), { at: "no time" }),
      refused('queue "jobs"', '"jobs"."payload"', "at: ", "nothing was written"),
    );
    assert.deepEqual(await app.query("SELECT * FROM jobs"), []);
  });
}

Deno.test("the path of an issue is written from the outside in", async () => {
  const zod = json("body", z.object({ lines: z.array(z.object({ price: z.number() })) }));
  const valibot = json("body", v.object({ lines: v.array(v.object({ price: v.number() })) }));
  const message = { lines: [{ price: 1 }, { price: "2" }] } as never;
  for (const payload of [zod, valibot]) {
    await assert.rejects(async () => await payload.encode(message), refused("lines.1.price: "));
  }
});

Deno.test("any library that follows Standard Schema will do", async () => {
  const even: StandardSchema<number, string> = {
    "~standard": {
      version: 1,
      validate: (value) =>
        typeof value === "number" && value % 2 === 0 ? { value: `${value}!` } : {
          issues: [
            { message: "It is odd" },
            { message: "It stays odd", path: ["a", { key: 0 }, Symbol("s")] },
          ],
        },
    },
  };
  const payload = json("body", even);
  assert.equal(await payload.encode(4), "4");
  assert.equal(await payload.decode("4"), "4!");
  await assert.rejects(
    async () => await payload.encode(3),
    refused("The schema refuses it: It is odd; a.0.Symbol(s): It stays odd"),
  );
});
