import type { MessageId, NewRow, PublishStatement } from "./driver/dialect.ts";
import type { QueryResult } from "./driver/driver.ts";
import { DriverError } from "./errors.ts";
import type { OpenTransaction } from "./held_transaction.ts";

/** A row that was to be inserted: its id, and whether it was; else that of the row with its key. */
export interface Inserted {
  readonly id: MessageId;
  readonly inserted: boolean;
}

type Runner = Pick<OpenTransaction, "run">;

/** Inserts a row, unless there is one with its unique key. */
export async function insertOne(
  runner: Runner,
  statement: PublishStatement,
  row: NewRow,
): Promise<Inserted> {
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    const result = await insert(runner, statement, row);
    if (result !== undefined) {
      return { id: await idOf(runner, statement, row, result), inserted: true };
    }
    const { rows: [there] } = await runner.run(statement.find!, row);
    if (there !== undefined) return { id: statement.readId(there), inserted: false };
    // It has been deleted since.
  }
  throw new DriverError(
    "conflict",
    `Cannot insert a row with the unique key ${JSON.stringify(row.uniqueKey)}: others insert and ` +
      `delete one all the time; try again`,
  );
}

/** Inserts rows in order, as many at once as can be. Ids come in the order of the rows. */
export async function insertMany(
  runner: Runner,
  statementOf: (columns: readonly string[]) => Promise<PublishStatement>,
  rows: readonly NewRow[],
): Promise<readonly Inserted[]> {
  const inserted = new Map<NewRow, Inserted>();
  const alike = Map.groupBy(rows, ({ columns }) => JSON.stringify(Object.keys(columns)));
  for (const group of alike.values()) {
    const statement = await statementOf(Object.keys(group[0]!.columns));
    const keyed = group.filter(({ uniqueKey }) => uniqueKey !== null);
    const plain = group.filter(({ uniqueKey }) => uniqueKey === null);
    await insertPlain(runner, statement, plain, inserted);
    // Whoever inserts the same keys does it in the same order, so that no two wait for each other.
    for (const row of keyed.toSorted(byKey)) {
      inserted.set(row, await insertOne(runner, statement, row));
    }
  }
  return rows.map((row) => inserted.get(row)!);
}

async function insertPlain(
  runner: Runner,
  statement: PublishStatement,
  rows: readonly NewRow[],
  inserted: Map<NewRow, Inserted>,
): Promise<void> {
  const { insertMany: many } = statement;
  if (many === undefined) {
    for (const row of rows) inserted.set(row, await insertOne(runner, statement, row));
    return;
  }
  for (const chunk of chunks(rows, statement.insert.params.length)) {
    const { rows: returned } = await runner.run(many(chunk.length), chunk);
    const ids = await idsOf(runner, statement, chunk, returned);
    for (const [index, row] of chunk.entries()) {
      inserted.set(row, { id: ids[index]!, inserted: true });
    }
  }
}

/** `undefined` if there is a row with its unique key. */
async function insert(
  runner: Runner,
  statement: PublishStatement,
  row: NewRow,
): Promise<QueryResult | undefined> {
  try {
    const result = await runner.run(statement.insert, row);
    const canBeThere = row.uniqueKey !== null && statement.isTaken === undefined;
    return canBeThere && result.rows.length === 0 ? undefined : result;
  } catch (error) {
    if (row.uniqueKey !== null && statement.isTaken?.(error)) return undefined;
    throw error;
  }
}

async function idOf(
  runner: Runner,
  { readId, lastId }: PublishStatement,
  row: NewRow,
  { rows: [returned] }: QueryResult,
): Promise<MessageId> {
  if (row.id !== undefined) return row.id;
  if (returned !== undefined) return readId(returned);
  const { rows: [last] } = await runner.run(lastId!, undefined);
  return readId(last!);
}

async function idsOf(
  runner: Runner,
  { readIds, lastId }: PublishStatement,
  rows: readonly NewRow[],
  returned: QueryResult["rows"],
): Promise<readonly MessageId[]> {
  if (rows[0]!.id !== undefined) return rows.map(({ id }) => id!);
  const listed = lastId === undefined ? returned : (await runner.run(lastId, undefined)).rows;
  return readIds(listed, rows.length);
}

/**
 * Rows in chunks whose sizes are powers of two, so that few different statements are prepared, and
 * which no server finds too large.
 */
function* chunks(rows: readonly NewRow[], paramsPerRow: number): Generator<readonly NewRow[]> {
  const most = Math.min(LARGEST_CHUNK, Math.floor(MOST_PARAMS / Math.max(1, paramsPerRow)));
  for (let start = 0; start < rows.length;) {
    const fitting = countOfFitting(rows, start, most);
    const size = 2 ** Math.floor(Math.log2(fitting));
    yield rows.slice(start, start + size);
    start += size;
  }
}

function countOfFitting(rows: readonly NewRow[], start: number, most: number): number {
  let bytes = 0;
  let count = 0;
  while (count < most && start + count < rows.length) {
    const { payload } = rows[start + count]!;
    bytes += typeof payload === "string" || payload instanceof Uint8Array ? payload.length : 0;
    if (count > 0 && bytes > LARGEST_CHUNK_BYTES) break;
    count++;
  }
  return count;
}

function byKey(one: NewRow, other: NewRow): number {
  return one.uniqueKey! < other.uniqueKey! ? -1 : one.uniqueKey! > other.uniqueKey! ? 1 : 0;
}

const MOST_TRIES = 5;
const LARGEST_CHUNK = 512;
const LARGEST_CHUNK_BYTES = 1_000_000;
/** Servers number the parameters of a statement in 16 bits. */
const MOST_PARAMS = 60_000;
