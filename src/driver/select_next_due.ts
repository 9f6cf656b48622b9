import type { NextDueStatement } from "./next_due.ts";
import { join, type Sql, sql, type SqlPart } from "./sql.ts";

/** What is asked about a queue: SELECTs of one column that return one row at the most. */
export interface NextDueParts<Values> {
  /** How long it takes until the first row of a kind becomes due, in milliseconds; NULL if none does. */
  readonly dueIn: readonly SqlPart<Values>[];
  /** Something if a row of a kind is claimable; nothing or NULL if none is. */
  readonly waiting: readonly SqlPart<Values>[];
}

/** The SELECT of all the answers as one row, which {@link readNextDue} reads. */
export function selectNextDue<Values>({ dueIn, waiting }: NextDueParts<Values>): Sql<Values> {
  const each = dueIn.map((part) => sql`SELECT (${part}) AS due_in`);
  const first = each.length === 0
    ? "NULL"
    : sql`(SELECT MIN(due_in) FROM (${join(each, " UNION ALL ")}) AS kinds)`;
  const isWaiting = join(waiting.map((part) => sql`(${part}) IS NOT NULL`), " OR ");
  return sql`SELECT ${first} AS due_in, CASE WHEN ${isWaiting} THEN 1 ELSE 0 END AS is_waiting`;
}

/** Reads the row of {@link selectNextDue}. */
export const readNextDue: NextDueStatement["read"] = (
  { due_in: dueIn, is_waiting: isWaiting },
) => ({
  dueIn: dueIn === null || dueIn === undefined ? undefined : Math.ceil(Number(dueIn)),
  isWaiting: Number(isWaiting) === 1,
});
