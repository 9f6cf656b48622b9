import assert from "node:assert/strict";
import type { Clock, NextDue, TableDescription, TableFacts } from "../../src/driver/dialect.ts";
import type { Driver, Session, SqlValue } from "../../src/driver/driver.ts";
import type { TimeRole } from "../../src/driver/roles.ts";
import { bind } from "../../src/driver/statement.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

/** A row, its times in milliseconds from the present. */
interface Row {
  /** Default: a second ago. */
  readonly due?: number;
  readonly leased?: number;
  readonly isDone?: boolean;
  /** Default 0. */
  readonly priority?: number;
  /** Default the queue that is asked about. */
  readonly queue?: string;
}

/** The rows of a table, and what is known of its queue then. */
interface Case {
  readonly title: string;
  readonly rows: readonly Row[];
  readonly dueIn?: number;
  readonly isWaiting?: boolean;
}

const HOUR = 3_600_000;
const QUEUE = "jobs";
const ALL_ROLES: TableDescription = {
  table: "jobs",
  form: "lease",
  id: { column: "id", generatedBy: "database" },
  payload: { column: "payload", storage: "text" },
  attempt: "attempt",
  lockedUntil: "locked_until",
  group: "queue",
  priority: "priority",
  retryAfter: "due",
  processedAt: "done",
};

const NO_ROW: Case = { title: "an empty table", rows: [] };
const OTHERS: Case = {
  title: "rows that are done, and rows of other queues",
  rows: [
    { isDone: true },
    { due: HOUR, isDone: true },
    { leased: HOUR, isDone: true },
    { queue: "others" },
    { queue: "others", due: HOUR },
    { queue: "others", leased: HOUR },
    { queue: "", due: HOUR },
  ],
};
const DUE: readonly Case[] = [
  { title: "a due row", rows: [{}], isWaiting: true },
  { title: "a row that is due later", rows: [{ due: 2 * HOUR }], dueIn: 2 * HOUR },
  {
    title: "the first of several",
    rows: [{ due: 3 * HOUR }, { due: 2 * HOUR }, { due: 4 * HOUR }],
    dueIn: 2 * HOUR,
  },
  {
    title: "a due row among later ones",
    rows: [{ due: 2 * HOUR }, {}, { due: 3 * HOUR }],
    dueIn: 2 * HOUR,
    isWaiting: true,
  },
];
const LEASED: readonly Case[] = [
  { title: "a leased row", rows: [{ leased: 2 * HOUR }], dueIn: 2 * HOUR },
  { title: "a row whose lease has ended", rows: [{ leased: -HOUR }], isWaiting: true },
  {
    title: "the first of several leases",
    rows: [{ leased: 3 * HOUR }, { leased: -HOUR }, { leased: 2 * HOUR }],
    dueIn: 2 * HOUR,
    isWaiting: true,
  },
];
const BOTH: readonly Case[] = [
  {
    title: "a leased row whose due time is after the lease",
    rows: [{ leased: 2 * HOUR, due: 5 * HOUR }],
    dueIn: 2 * HOUR,
  },
  {
    title: "a leased row whose due time is before the end of the lease",
    rows: [{ leased: 2 * HOUR, due: HOUR }],
    dueIn: 2 * HOUR,
  },
  {
    title: "a row that is due after its lease has ended",
    rows: [{ leased: -HOUR, due: 2 * HOUR }],
    dueIn: 2 * HOUR,
  },
  {
    title: "a lease that ends before another row is due",
    rows: [{ leased: 2 * HOUR }, { due: 3 * HOUR }],
    dueIn: 2 * HOUR,
  },
  {
    title: "a row that is due before a lease ends",
    rows: [{ leased: 3 * HOUR }, { due: 2 * HOUR }],
    dueIn: 2 * HOUR,
  },
];
const PRIORITIES: readonly Case[] = [
  {
    title: "the first of all priorities",
    rows: [
      { priority: 1, due: 3 * HOUR },
      { priority: -5, due: 4 * HOUR },
      { priority: 2_000_000_000, due: 2 * HOUR },
    ],
    dueIn: 2 * HOUR,
  },
  {
    title: "a due row of the last priority",
    rows: [{ priority: 1, due: 2 * HOUR }, { priority: 2 }],
    dueIn: 2 * HOUR,
    isWaiting: true,
  },
];

/** To the millisecond, which only the given clock can be asked for. */
const EXACT: readonly Case[] = [
  { title: "a row that is due in a millisecond", rows: [{ due: 1 }], dueIn: 1 },
  { title: "a row that is due at this millisecond", rows: [{ due: 0 }], isWaiting: true },
  { title: "a lease that ends in a millisecond", rows: [{ leased: 1 }], dueIn: 1 },
  { title: "a lease that ends at this millisecond", rows: [{ leased: 0 }], isWaiting: true },
  {
    title: "a row that is due in 10 years",
    rows: [{ due: 87_600 * HOUR + 7 }],
    dueIn: 87_600 * HOUR + 7,
  },
];

/** In which tables which cases hold. */
const TABLES: Readonly<Record<string, readonly [Partial<TableDescription>, readonly Case[]]>> = {
  "with every role": [{}, [NO_ROW, OTHERS, ...DUE, ...LEASED, ...BOTH, ...PRIORITIES]],
  "of FIFO groups": [
    { fifo: true },
    [NO_ROW, OTHERS, ...DUE, ...LEASED, ...BOTH, ...PRIORITIES],
  ],
  "without due times": [{ retryAfter: undefined }, [NO_ROW, OTHERS, ...LEASED, DUE[0]!]],
  "without leases": [
    { form: "row lock", lockedUntil: undefined },
    [NO_ROW, ...DUE, ...PRIORITIES],
  ],
  "without priorities": [{ priority: undefined }, [NO_ROW, OTHERS, ...DUE, ...LEASED, ...BOTH]],
  "of a lease and nothing else": [
    { group: undefined, priority: undefined, retryAfter: undefined, processedAt: undefined },
    [NO_ROW, ...LEASED, DUE[0]!],
  ],
  "of a due time and nothing else": [
    {
      form: "row lock",
      group: undefined,
      priority: undefined,
      lockedUntil: undefined,
      processedAt: undefined,
    },
    [NO_ROW, ...DUE],
  ],
  "of an id and a payload": [
    {
      form: "row lock",
      group: undefined,
      priority: undefined,
      lockedUntil: undefined,
      processedAt: undefined,
      retryAfter: undefined,
    },
    [NO_ROW, DUE[0]!],
  ],
};

/** A table in the database, and one session. */
class Table {
  readonly #driver: Driver;
  readonly #session: Session;
  readonly #table: TableDescription;
  readonly #facts: TableFacts;

  private constructor(
    driver: Driver,
    session: Session,
    table: TableDescription,
    facts: TableFacts,
  ) {
    this.#driver = driver;
    this.#session = session;
    this.#table = table;
    this.#facts = facts;
  }

  /** Creates the table for the test, and drops it afterwards. */
  static async with(
    database: TestDatabase,
    roles: Partial<TableDescription>,
    test: (table: Table) => Promise<void>,
  ): Promise<void> {
    const driver = database.connect();
    const table = { ...ALL_ROLES, ...roles };
    await driver.open();
    try {
      const session = await driver.session();
      for (const text of driver.dialect.ddl(table)) await session.query(text);
      const inspect = driver.dialect.inspect(table);
      const { rows } = await session.query(inspect.text, bind(inspect, undefined));
      await test(new Table(driver, session, table, driver.dialect.facts(table, rows)));
      await session.query("DROP TABLE jobs");
      await session.release();
    } finally {
      await driver.close();
    }
  }

  /** Puts these rows in the place of all others. */
  async fill(rows: readonly Row[], now: number): Promise<void> {
    await this.#session.query("DELETE FROM jobs");
    for (const row of rows) await this.#insert(row, now);
  }

  async ask(clock: Clock, now: number): Promise<NextDue> {
    const use = { clock, group: QUEUE };
    const { statement, read } = this.#driver.dialect.nextDue(this.#table, this.#facts, use);
    const { rows } = await this.#session.query(statement.text, bind(statement, { now }));
    assert.equal(rows.length, 1);
    return read(rows[0]!);
  }

  async #insert({ due = -1_000, leased, isDone, priority = 0, queue = QUEUE }: Row, now: number) {
    const { group, lockedUntil, retryAfter, processedAt } = this.#table;
    const time = (role: TimeRole, from: number): SqlValue =>
      this.#driver.dialect.encodeTime(this.#table, this.#facts, role, now + from);
    const values: Readonly<Record<string, SqlValue>> = {
      payload: "{}",
      ...(group === undefined ? {} : { queue }),
      ...(this.#table.priority === undefined ? {} : { priority: BigInt(priority) }),
      ...(retryAfter === undefined ? {} : { due: time("retryAfter", due) }),
      ...(lockedUntil === undefined || leased === undefined
        ? {}
        : { locked_until: time("lockedUntil", leased) }),
      ...(processedAt === undefined || !isDone ? {} : { done: time("processedAt", -1_000) }),
    };
    const columns = Object.keys(values);
    const places = columns.map((_, index) => this.#driver.dialect.placeholder(index + 1));
    await this.#session.query(
      `INSERT INTO jobs (${columns.join(", ")}) VALUES (${places.join(", ")})`,
      Object.values(values),
    );
  }
}

async function byGivenClock(database: TestDatabase): Promise<void> {
  const now = Date.UTC(2030, 0, 31, 10, 0, 0, 250);
  for (const [kind, [roles, cases]] of Object.entries(TABLES)) {
    await Table.with(database, roles, async (table) => {
      const exact = EXACT.filter(({ rows: [row] }) =>
        row?.leased === undefined ? cases.includes(DUE[1]!) : cases.includes(LEASED[0]!)
      );
      for (const { title, rows, dueIn, isWaiting = false } of [...cases, ...exact]) {
        await table.fill(rows, now);
        assert.deepEqual(
          await table.ask("given", now),
          { dueIn, isWaiting },
          `${title}, in a table ${kind}`,
        );
      }
    });
  }
}

/** @param given the time that is given, if it is not the present */
async function byDatabaseClock(database: TestDatabase, given?: number): Promise<void> {
  for (const [kind, [roles, cases]] of Object.entries(TABLES)) {
    await Table.with(database, roles, async (table) => {
      for (const { title, rows, dueIn, isWaiting = false } of cases) {
        const now = Date.now();
        await table.fill(rows, now);
        const found = await table.ask("database", given ?? now);
        const message = `${title}, in a table ${kind}: ${JSON.stringify(found)}`;
        assert.equal(found.isWaiting, isWaiting, message);
        assert.equal(found.dueIn === undefined, dueIn === undefined, message);
        if (dueIn === undefined) continue;
        assert(Number.isInteger(found.dueIn), message);
        assert(Math.abs(found.dueIn! - dueIn) < HOUR / 2, message);
      }
    });
  }
}

/** When a queue's next row becomes due, asked by the dialect's own statement. */
export const nextDueTests: readonly ConformanceTest[] = [
  {
    name: "a queue's next due time is the first end of a lease or due time, by the given clock",
    run: byGivenClock,
  },
  {
    name: "a queue's next due time by the database's clock",
    run: (database) => byDatabaseClock(database),
  },
  {
    name: "a queue's next due time by a server's clock, whatever is given",
    needs: "a server",
    run: (database) => byDatabaseClock(database, 0),
  },
  {
    name: "a queue's next due time is found among 1,100 priorities",
    run: (database) =>
      Table.with(database, {}, async (table) => {
        const now = Date.UTC(2030, 0, 31);
        const later = Array.from({ length: 1_100 }, (_, priority) => ({
          priority,
          due: 2 * HOUR - priority,
        }));
        await table.fill(later, now);
        const dueIn = 2 * HOUR - 1_099;
        assert.deepEqual(await table.ask("given", now), { dueIn, isWaiting: false });
        await table.fill([...later, { priority: 1_100 }], now);
        assert.deepEqual(await table.ask("given", now), { dueIn, isWaiting: true });
      }),
  },
];
