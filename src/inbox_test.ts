import assert from "node:assert/strict";
import { bytes } from "./bytes.ts";
import { DeclarationError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import { json } from "./json.ts";
import { row } from "./row.ts";
import { text } from "./text.ts";

/** As plain JavaScript calls it. */
const describe = inbox as unknown as (table: unknown, roles?: unknown) => ReturnType<typeof inbox>;
const roles = { id: "id", payload: text("payload") };

function refuses(table: unknown, roles: unknown, ...patterns: (RegExp | string)[]): void {
  assert.throws(() => describe(table, roles), (error: unknown) => {
    assert(error instanceof DeclarationError, String(error));
    assert.equal(error.code, "declaration");
    assert.match(error.message, /^[A-Z].*[^.]$/s, "a capital letter first, no full stop last");
    for (const pattern of patterns) {
      if (typeof pattern === "string") assert(error.message.includes(pattern), error.message);
      else assert.match(error.message, pattern);
    }
    return true;
  });
}

Deno.test("a described table holds what was described, and drivers see no more than that", () => {
  const payload = json<{ a: number }>("body");
  const jobs = inbox("queues.jobs", {
    id: "key",
    payload,
    attempt: "tries",
    lockedUntil: "locked_until",
  });
  assert.equal(jobs.table, "queues.jobs");
  assert.equal(jobs.form, "lease");
  assert.equal(jobs.payload, payload);
  assert.equal(jobs.generateId, undefined);
  assert.deepEqual(jobs.description, {
    table: "queues.jobs",
    form: "lease",
    id: { column: "key", generatedBy: "database" },
    payload: { column: "body", storage: "text" },
    attempt: "tries",
    lockedUntil: "locked_until",
    group: undefined,
    fifo: false,
    priority: undefined,
    retryAfter: undefined,
    processedAt: undefined,
    headers: undefined,
    partitionKey: undefined,
    uniqueKey: undefined,
    lastError: undefined,
    lockKey: undefined,
  });
});

Deno.test("every role and the key of the lock are described", () => {
  const { description, form } = inbox("jobs", {
    id: "id",
    group: "queue",
    priority: "priority",
    retryAfter: "due",
    processedAt: "done",
    headers: "headers",
    partitionKey: "key",
    uniqueKey: "dedup",
    lastError: "error",
    payload: text("payload"),
  }, { advisoryLock: "{region}/accounts-{account_id}" });
  assert.equal(form, "advisory lock");
  const { group, priority, retryAfter, processedAt, lockKey } = description;
  assert.deepEqual([group, priority, retryAfter, processedAt], [
    "queue",
    "priority",
    "due",
    "done",
  ]);
  const { headers, partitionKey, uniqueKey, lastError } = description;
  assert.deepEqual([headers, partitionKey, uniqueKey, lastError], [
    "headers",
    "key",
    "dedup",
    "error",
  ]);
  assert.deepEqual(lockKey, [{ column: "region" }, "/accounts-", { column: "account_id" }]);
});

Deno.test("a key whose braces do not match is refused", () => {
  for (const key of ["", "a-{id", "a-id}", "a-{}", "a-{{id}}", 5]) {
    assert.throws(
      () => inbox("jobs", { id: "id", payload: text("payload") }, { advisoryLock: key as never }),
      (error: unknown) =>
        error instanceof DeclarationError && error.message.includes('Cannot lock rows of "jobs"'),
      String(key),
    );
  }
});

Deno.test("what cannot work together is refused, as the types do", () => {
  const key = { advisoryLock: "jobs-{id}" };
  const together = (roles: object, options: object, message: RegExp): void =>
    assert.throws(
      () =>
        inbox("jobs", { id: "id", payload: text("payload"), ...roles } as never, options as never),
      (error: unknown) => error instanceof DeclarationError && message.test(error.message),
    );
  together({ attempt: "tries" }, { advisoryLock: "a-{Tries}" }, /column of the role attempt/);
  together({ lastError: "error" }, { advisoryLock: "a-{error}" }, /column of the role lastError/);
  together({ lockedUntil: "until" }, key, /^"jobs" cannot have two forms/);
  together({ group: "g", fifo: true }, key, /^"jobs" cannot be fifo in the advisory lock form/);
  together({ fifo: true }, {}, /^"jobs" cannot be fifo without groups/);
  together({ group: "g", fifo: "yes" }, {}, /fifo is "yes"; give true/);
  together({}, { lock: "a" }, /lock is not an option; options are advisoryLock, clock/);
  together({}, { clock: "server" }, /the clock "server": give "database" or "host"/);
});

Deno.test("ddl writes the table for each database, and refuses others by name", () => {
  const jobs = inbox("jobs", { id: "id", payload: text("payload"), lockedUntil: "until" });
  for (const database of ["postgres", "mysql", "mariadb", "sqlite"] as const) {
    assert.match(jobs.ddl(database), /^CREATE TABLE [^;]*jobs[^;]*;\n/);
  }
  assert.throws(() => jobs.ddl("oracle" as never), /"oracle": give "postgres", "mysql"/);
});

Deno.test("without the role lockedUntil the form is row lock", () => {
  const plain = inbox("jobs", { id: "id", payload: bytes("body") });
  assert.equal(plain.form, "row lock");
  assert.equal(plain.description.form, "row lock");
  assert.equal(plain.description.payload?.storage, "bytes");
  assert.equal(describe("jobs", { ...roles, lockedUntil: undefined }).form, "row lock");
});

Deno.test("ids may be made by the service", () => {
  let next = 0n;
  const jobs = inbox("jobs", {
    id: { column: "key", generate: () => ++next },
    payload: text("payload"),
  });
  assert.deepEqual(jobs.description.id, { column: "key", generatedBy: "service" });
  assert.equal(jobs.generateId?.(), 1n);
});

Deno.test("a table's name is given as table or schema.table", () => {
  for (const name of ["", ".", "a.", ".b", "a.b.c", undefined, null, 5, {}, ["jobs"]]) {
    refuses(name, roles, /^Cannot describe the table /, 'give "table" or "schema.table"');
  }
  refuses("a.b.c", roles, '"a.b.c"');
  for (const name of ["jobs", "queues.jobs", "my jobs", 'odd "name"', "日本"]) {
    assert.equal(describe(name, roles).table, name);
  }
});

Deno.test("roles that are absent are asked for", () => {
  for (const none of [undefined, null, "id", 5]) {
    refuses("jobs", none, 'Cannot describe "jobs" without roles: give { id, payload, … }');
  }
});

Deno.test("an unknown role is refused, with the roles there are", () => {
  refuses(
    "jobs",
    { ...roles, locked_until: "locked_until" },
    'Cannot describe "jobs"',
    /locked_until is not a role; roles are id, payload, fifo, headers, partitionKey, uniqueKey, lastError, group, priority, retryAfter, attempt, processedAt, lockedUntil$/,
  );
  refuses("jobs", { ...roles, Id: "id", pririty: "priority" }, /Id, pririty is not a role/);
  refuses("jobs", ["id", "payload"], 'Cannot describe "jobs"', /is not a role/);
});

Deno.test("without a payload, and with row(), the row itself is the message", () => {
  for (const payload of [undefined, row()]) {
    const jobs = describe("jobs", { id: "id", payload });
    assert.equal(jobs.description.payload, undefined);
    assert.equal(jobs.form, "row lock");
  }
  assert.equal(describe("jobs", { id: "id" }).description.payload, undefined);
});

Deno.test("a payload that is no codec is refused with what to give", () => {
  for (const payload of [null, "payload", 5, {}, { column: "payload" }, () => {}]) {
    refuses(
      "jobs",
      { id: "id", payload },
      'Cannot describe "jobs": the role payload is ',
      /give json\("column"\), text\("column"\), bytes\("column"\), codec\("column", …\) or row\(\)$/,
    );
  }
  refuses("jobs", { id: "id", payload: "payload" }, 'the role payload is "payload"');
});

Deno.test("a missing id, or a column that has no name, is refused with its role", () => {
  for (const id of [undefined, null, "", 5, {}]) {
    refuses(
      "jobs",
      { ...roles, id },
      'Cannot describe "jobs": the role id is ',
      /give the name of its column/,
    );
  }
  for (
    const role of ["attempt", "lockedUntil", "headers", "partitionKey", "uniqueKey", "lastError"]
  ) {
    for (const column of [null, "", 5, true, {}]) {
      refuses(
        "jobs",
        { ...roles, [role]: column },
        `the role ${role} is `,
        /give the name of its column/,
      );
    }
  }
  refuses("jobs", { ...roles, id: { column: "", generate: () => "a" } }, 'the role id is ""');
  refuses("jobs", { id: "id", payload: text("") }, 'the role payload is ""');
  refuses("jobs", { id: "id", payload: text(undefined as never) }, "the role payload is undefined");
});

Deno.test("an id with a column but without generate is refused with what is missing", () => {
  refuses("jobs", { ...roles, id: { column: "id" } }, /"jobs".*\bid\b.*generate/);
  refuses("jobs", { ...roles, id: { column: "id", generate: "uuid" } }, /"jobs".*\bid\b.*generate/);
});

Deno.test("a column with two roles is refused with both, whatever the case of its name", () => {
  const fix = "give each role a column of its own";
  refuses(
    "jobs",
    { ...roles, attempt: "id" },
    'Cannot describe "jobs": the column "id" plays id and attempt',
    fix,
  );
  refuses("jobs", { ...roles, attempt: "ID" }, 'the column "ID" plays id and attempt', fix);
  refuses(
    "jobs",
    { ...roles, attempt: "n", lockedUntil: "n" },
    'the column "n" plays attempt and lockedUntil',
    fix,
  );
  refuses(
    "jobs",
    { id: "payload", payload: text("payload") },
    'the column "payload" plays id and payload',
    fix,
  );
  refuses(
    "jobs",
    { ...roles, id: { column: "payload", generate: () => "a" } },
    "plays id and payload",
    fix,
  );
});

Deno.test("a queue's name is a label, the table's name unless given", () => {
  const jobs = inbox("jobs", roles);
  assert.equal(jobs.queue().name, "jobs");
  assert.equal(jobs.queue("mails").name, "mails");
  assert.equal(jobs.queue("mails").inbox, jobs);
  for (const name of ["", null, 5]) {
    assert.throws(() => jobs.queue(name as string), (error: unknown) => {
      assert(error instanceof DeclarationError, String(error));
      assert.match(error.message, /Cannot name a queue of "jobs" .*: give a name or none$/);
      return true;
    });
  }
});

Deno.test("a description does not follow what becomes of the object it was made from", () => {
  const changing = { id: "id", payload: text("payload"), attempt: "attempt" };
  const jobs = inbox("jobs", changing);
  changing.attempt = "other";
  assert.equal(jobs.description.attempt, "attempt");
});
