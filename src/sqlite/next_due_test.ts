import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { NextDue, TableDescription } from "../driver/dialect.ts";
import type { SqlRow, SqlValue } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import type { SqliteFacts } from "./columns.ts";
import { ddl } from "./ddl.ts";
import { nextDue } from "./next_due.ts";
import { facts, inspect } from "./table_facts.ts";

const NOW = Date.UTC(2026, 0, 31, 10, 0, 0, 250);
const ROLES: TableDescription = {
  table: "jobs",
  form: "lease",
  id: { column: "id", generatedBy: "database" },
  payload: { column: "payload", storage: "text" },
  lockedUntil: "locked_until",
  group: "queue",
  priority: "priority",
  retryAfter: "due",
};

/** A time of each column, and what is known of the queue then. */
interface Case {
  readonly due?: SqlValue;
  readonly lockedUntil?: SqlValue;
  readonly dueIn?: number;
  readonly isWaiting?: boolean;
}

const TEXT: readonly Case[] = [
  { due: "2026-01-31T10:00:00.250Z", isWaiting: true },
  { due: "2026-01-31T10:00:00.251Z", dueIn: 1 },
  { due: "2026-01-31 10:00:00", isWaiting: true },
  { due: "2026-01-31 10:00:01", dueIn: 750 },
  { due: "2026-02-01 00:00:00", dueIn: 50_399_750 },
  { due: "2036-01-31T10:00:00.257Z", dueIn: 3652 * 86_400_000 + 7 },
  { due: null, isWaiting: true },
  { lockedUntil: "2026-01-31T10:00:00.250Z", isWaiting: true },
  { lockedUntil: "2026-01-31T10:00:00.251Z", dueIn: 1 },
  { lockedUntil: "2026-01-31 10:00:00", isWaiting: true },
  { lockedUntil: "2026-01-31 10:00:01", dueIn: 750 },
  { lockedUntil: "2026-01-31 10:00:00", due: "2026-01-31 10:00:01", dueIn: 750 },
];
const MILLISECONDS: readonly Case[] = [
  { due: BigInt(NOW), isWaiting: true },
  { due: BigInt(NOW + 1), dueIn: 1 },
  { due: NOW + 0.5, dueIn: 1 },
  { due: null, isWaiting: true },
  { lockedUntil: BigInt(NOW), isWaiting: true },
  { lockedUntil: BigInt(NOW + 1), dueIn: 1 },
  { lockedUntil: BigInt(NOW), due: BigInt(NOW + 1), dueIn: 1 },
];

for (
  const [type, cases] of [["TEXT", TEXT], ["DATETIME", TEXT], ["INTEGER", MILLISECONDS]] as const
) {
  for (const priority of ["priority", undefined]) {
    Deno.test(`the next due time of ${type} columns, ${priority ? "with" : "without"} priorities`, () => {
      for (const { due = type === "INTEGER" ? 0 : "2020-01-01 00:00:00", ...rest } of cases) {
        using table = new Table({ ...ROLES, priority }, type);
        table.insert(due, rest.lockedUntil ?? null);
        const { dueIn, isWaiting = false } = rest;
        assert.deepEqual(table.ask(), { dueIn, isWaiting }, `${due}, ${rest.lockedUntil}`);
      }
    });
  }
}

Deno.test("of times of one day in two formats, which text does not order, the first counts", () => {
  for (const column of ["due", "lockedUntil"] as const) {
    using table = new Table(ROLES, "TEXT");
    for (const time of ["2026-01-31 12:00:00", "2026-01-31T11:00:00.250Z", "2026-02-01 01:00:00"]) {
      const past = "2020-01-01 00:00:00";
      table.insert(column === "due" ? time : past, column === "due" ? null : time);
    }
    assert.deepEqual(table.ask(), { dueIn: 3_600_000, isWaiting: false }, column);
  }
});

Deno.test("a fraction of a millisecond makes no row due too early", () => {
  using table = new Table(ROLES, "INTEGER");
  table.insert(BigInt(NOW + 1), null);
  const { dueIn } = table.ask(NOW + 0.9);
  assert(dueIn !== undefined && NOW + 0.9 + dueIn >= NOW + 1, `${dueIn}`);
});

Deno.test("a row that is no row of a claim is neither waiting nor due later", () => {
  using table = new Table(ROLES, "INTEGER");
  table.insert("no time", null);
  table.insert(0, "no time");
  table.insert(new Uint8Array([1]), null);
  assert.deepEqual(table.ask(), { dueIn: undefined, isWaiting: false });
  table.insert(BigInt(NOW + 5), null);
  assert.deepEqual(table.ask(), { dueIn: 5, isWaiting: false });
});

/** A table made by ddl(), its times of one type, any of which may be NULL. */
class Table implements Disposable {
  readonly #database = new DatabaseSync(":memory:");
  readonly #description: TableDescription;
  readonly #facts: SqliteFacts;

  constructor(description: TableDescription, type: string) {
    this.#description = description;
    for (const text of ddl(description)) {
      this.#database.exec(
        text.replace(/"due" INTEGER NOT NULL DEFAULT 0/, `"due" ${type}`)
          .replace(/"locked_until" INTEGER/, `"locked_until" ${type}`),
      );
    }
    this.#facts = facts(description, this.#run(inspect(description), undefined));
    assert.deepEqual(this.#facts.problems, []);
  }

  insert(due: SqlValue, lockedUntil: SqlValue): void {
    this.#database.prepare(
      "INSERT INTO jobs (payload, queue, due, locked_until) VALUES ('{}', 'jobs', ?, ?)",
    ).run(due, lockedUntil);
  }

  ask(now = NOW): NextDue {
    const use = { clock: "given", group: "jobs" } as const;
    const { statement, read } = nextDue(this.#description, this.#facts, use);
    const rows = this.#run(statement, { now });
    assert.equal(rows.length, 1);
    return read(rows[0]!);
  }

  #run<V>({ text, params }: Statement<V>, values: V): SqlRow[] {
    const statement = this.#database.prepare(text);
    statement.setReadBigInts(true);
    return statement.all(...bind({ text, params }, values)) as SqlRow[];
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}
