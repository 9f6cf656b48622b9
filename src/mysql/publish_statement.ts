import type {
  NewRow,
  PublishStatement,
  PublishUse,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import type { SqlValue } from "../driver/driver.ts";
import { join, type Sql, sql, type SqlPart, where } from "../driver/sql.ts";
import { Columns } from "./columns.ts";
import { roundUp } from "./encode_time.ts";
import { quote } from "./quote.ts";
import { isTaken } from "./taken_key.ts";
import type { MysqlFacts } from "./table_facts.ts";
import { Times } from "./times.ts";

/** How rows are published. The driver returns the id that the database has made as its row. */
export function publishStatement(
  table: TableDescription,
  facts: TableFacts,
  use: PublishUse,
): PublishStatement {
  const columns = new Columns(table, facts);
  const written = rowValues(columns, table, use).filter(([column]) => column !== undefined);
  const names = written.map(([column]) => column).join(", ");
  const row = sql<NewRow>`(${join(written.map(([, value]) => value), ", ")})`;
  const insert = `INSERT INTO ${columns.table} (${names}) VALUES`;
  const { uniqueIndexes = [] } = facts as MysqlFacts;
  const generated = table.id.generatedBy === "database";
  return {
    insert: sql`${insert} ${row}`,
    insertMany: (count) => sql`${insert} ${join(rowsOf(row, count), ", ")}`,
    ...find(columns),
    ...(generated ? { lastId: LAST_ID } : {}),
    isTaken: (error) => isTaken(error, uniqueIndexes),
    readId: (row) => columns.readId(row),
    readIds: ([first], count) => idsFrom(first!.id!, first!.step!, count),
  };
}

/**
 * The id of the last row that was inserted on the connection, of many that of the first: the ids of
 * one statement whose rows are counted beforehand are a step apart.
 */
const LAST_ID =
  sql`SELECT CAST(LAST_INSERT_ID() AS CHAR) AS id, @@auto_increment_increment AS step` as Sql<void>;

/** MySQL has a clause that needs no right but to read; MariaDB does not know it. */
const AS_IT_IS = "/*!80001 FOR SHARE */ /*M!100000 LOCK IN SHARE MODE */";

function idsFrom(first: SqlValue, step: SqlValue, count: number): readonly bigint[] {
  return Array.from(
    { length: count },
    (_, index) => BigInt(String(first)) + BigInt(index) * BigInt(String(step)),
  );
}

function rowValues(
  columns: Columns,
  table: TableDescription,
  use: PublishUse,
): readonly (readonly [column: string | undefined, value: SqlPart<NewRow>])[] {
  return [
    [columns.payload, ({ payload }) => payload],
    [table.id.generatedBy === "service" ? columns.id : undefined, ({ id }) => id ?? null],
    [columns.attempt, "1"],
    [columns.headers, ({ headers }) => headers],
    [columns.group, ({ group }) => group],
    [columns.priority, ({ priority }) => priority],
    [columns.partitionKey, ({ key }) => key],
    [columns.uniqueKey, ({ uniqueKey }) => uniqueKey],
    [columns.retryAfter, due(columns, use)],
    ...use.columns.map((name) =>
      [quote(name), ({ columns }: NewRow) => columns[name] ?? null] as const
    ),
  ];
}

function rowsOf(row: Sql<NewRow>, count: number): readonly Sql<readonly NewRow[]>[] {
  return Array.from({ length: count }, (_, index) => ({
    text: row.text,
    params: row.params.map((param) => (rows: readonly NewRow[]) => param(rows[index]!)),
  }));
}

/**
 * The row that has a unique key already. Read as it is now: at REPEATABLE READ, a caller's usual level,
 * its transaction would not see a row that was committed since it began. Ids cross as text, which no
 * client rounds.
 */
function find(columns: Columns): Pick<PublishStatement, "find"> {
  const { group, id, table, uniqueKey } = columns;
  if (uniqueKey === undefined) return {};
  const isIt = where<NewRow>([
    ...(group === undefined ? [] : [sql<NewRow>`${group} = ${({ group }) => group}`]),
    sql<NewRow>`${uniqueKey} = ${({ uniqueKey }) => uniqueKey}`,
  ]);
  return { find: sql`SELECT CAST(${id} AS CHAR) AS id FROM ${table} ${isIt}${AS_IT_IS}` };
}

function due(columns: Columns, { clock }: PublishUse): Sql<NewRow> {
  const times = new Times(columns, clock);
  const at = ({ at }: NewRow): number | undefined =>
    at === undefined ? undefined : roundUp(columns, "retryAfter", at);
  const later = times.after("retryAfter", ({ delay }: NewRow) => delay);
  return sql`COALESCE(${times.known("retryAfter", at)}, ${later})`;
}
