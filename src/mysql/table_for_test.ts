import type { Clock, QueueUse, RowContent, TableDescription } from "../driver/dialect.ts";
import type { QueryResult, Session, SqlRow, SqlValue } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import { mysqlDialect } from "./dialect.ts";
import { serverTest, withDriver } from "./server_for_test.ts";
import { facts, type MysqlFacts } from "./table_facts.ts";

/** What the roles of a described table are, and whether their columns are not those of `ddl`. */
export interface TableOptions extends Partial<TableDescription> {
  /** Statements that alter the table; `{table}` stands for its name. */
  readonly alter?: readonly string[];
}

/** A table on a real server, and two sessions. */
export interface TestTable {
  readonly table: TableDescription;
  readonly name: string;
  /** What the dialect knows of it. */
  readonly facts: MysqlFacts;
  readonly session: Session;
  readonly other: Session;
  /** Runs SQL; `{table}` stands for the table's name. */
  sql(text: string, params?: readonly SqlValue[]): Promise<QueryResult>;
  /** Runs a statement of the dialect on the first session. */
  run<Values>(statement: Statement<Values>, values: NoInfer<Values>): Promise<QueryResult>;
  /** Reads the facts again. */
  inspect(): Promise<MysqlFacts>;
}

/** All roles of the lease form, with columns named after them. */
export const LEASE: Partial<TableDescription> = {
  form: "lease",
  attempt: "attempt",
  lockedUntil: "locked_until",
  group: "queue",
  priority: "priority",
  retryAfter: "retry_after",
  processedAt: "processed_at",
};

/** All roles of the row lock form. */
export const ROW_LOCK: Partial<TableDescription> = {
  ...LEASE,
  form: "row lock",
  lockedUntil: undefined,
};

/** All roles of the advisory lock form. */
export const ADVISORY_LOCK: Partial<TableDescription> = {
  ...ROW_LOCK,
  form: "advisory lock",
  lockKey: ["account-", { column: "account" }],
};

/** The queue `q` by the database's clock. */
export const DATABASE_CLOCK: QueueUse = { clock: "database", group: "q" };
/** The queue `q` by the given clock. */
export const GIVEN_CLOCK: QueueUse = { clock: "given", group: "q" };
/** Both clocks. */
export const CLOCKS: readonly Clock[] = ["database", "given"];
/** The types that a column of a time may have. */
export const TIME_TYPES: readonly string[] = [
  "DATETIME",
  "DATETIME(1)",
  "DATETIME(3)",
  "DATETIME(6)",
  "TIMESTAMP",
  "TIMESTAMP(3)",
  "BIGINT",
];
/** A whole second, in milliseconds since 1970. */
export const SECOND: number = Date.parse("2026-01-31T10:00:01Z");

/** What a row with this payload holds for its handler, where there is nothing else. */
export function contentOf(payload: SqlValue): RowContent {
  return { payload, headers: undefined, key: undefined, hasFailed: false };
}

/** A test with a table of its own on each server there is. */
export function tableTest(
  name: string,
  options: TableOptions,
  test: (table: TestTable) => Promise<void>,
): void {
  serverTest(name, (server) => withTable(server, options, test));
}

/** Runs a test with a table as `ddl` makes it, altered as the options say. */
async function withTable(
  server: string,
  { alter = [], ...described }: TableOptions,
  test: (table: TestTable) => Promise<void>,
): Promise<void> {
  const table = describe(described);
  await withDriver(server, {}, async (driver) => {
    const [session, other] = [await driver.session(), await driver.session()];
    const sql = (text: string, params: readonly SqlValue[] = []) =>
      session.query(text.replaceAll("{table}", table.table), params);
    try {
      for (const text of [...mysqlDialect.ddl(table), ...alter]) await sql(text);
      const inspect = async () => facts(table, await inspected(session, table));
      await test({
        table,
        name: table.table,
        facts: await inspect(),
        session,
        other,
        sql,
        run: (statement, values) => session.query(statement.text, bind(statement, values)),
        inspect,
      });
    } finally {
      await Promise.all([session.rollback(), other.rollback()]);
      await sql("DROP TABLE IF EXISTS {table}");
      await Promise.all([session.release(), other.release()]);
    }
  });
}

/** Runs a test with one more table, as `ddl` makes it, altered as the options say. */
export async function withOther(
  { session }: TestTable,
  { alter = [], ...described }: TableOptions,
  test: (table: TableDescription, facts: MysqlFacts) => Promise<void>,
): Promise<void> {
  const table = describe(described);
  try {
    for (const text of [...mysqlDialect.ddl(table), ...alter]) {
      await session.query(text.replaceAll("{table}", table.table));
    }
    await test(table, facts(table, await inspected(session, table)));
  } finally {
    await session.query(`DROP TABLE IF EXISTS ${table.table}`);
  }
}

function describe(roles: Partial<TableDescription>): TableDescription {
  return {
    table: `holdfast_${crypto.randomUUID().replaceAll("-", "")}`,
    form: "lease",
    id: { column: "id", generatedBy: "database" },
    payload: { column: "payload", storage: "text" },
    ...roles,
  };
}

async function inspected(session: Session, table: TableDescription): Promise<readonly SqlRow[]> {
  const inspect = mysqlDialect.inspect(table);
  return (await session.query(inspect.text, bind(inspect, undefined))).rows;
}
