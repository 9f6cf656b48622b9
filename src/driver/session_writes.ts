import type { Burial, RowAt, SessionWrites, TableDescription } from "./dialect.ts";
import type { Statement } from "./statement.ts";

/**
 * What a write of a row that a session holds does: deletes the row, or sets some of its columns. The
 * role `lastError`, where there is one, is set by every write that does not delete.
 */
export type SessionWrite<Values> = "delete" | {
  /** What becomes of the attempt column: one more, one less; left as it is if absent. */
  readonly attempt?: "count" | "give back";
  /** How long after the present the row is due, in milliseconds; left as it is if absent. */
  readonly dueAfter?: (values: Values) => number;
  /** Whether the row is marked as done now. */
  readonly done?: boolean;
};

/** What each write of the row lock form does, the same on every database. */
export function rowLockWrites(
  table: TableDescription,
  write: <Extra>(write: SessionWrite<RowAt & Extra>) => Statement<RowAt & Extra>,
  bury: Burial<RowAt> | undefined,
): SessionWrites<RowAt> {
  const { attempt, lastError, processedAt, retryAfter } = table;
  const count = attempt === undefined ? undefined : "count";
  return {
    remove: write(processedAt === undefined ? "delete" : { done: true }),
    ...(attempt ?? lastError) === undefined ? {} : { free: write({ attempt: count }) },
    ...retryAfter === undefined ? {} : { delay: write({ attempt: count, dueAfter: delay }) },
    ...bury === undefined ? {} : { bury },
  };
}

/** What each write of the advisory lock form does, whose claim has counted the attempt. */
export function advisoryLockWrites<At extends RowAt>(
  table: TableDescription,
  write: <Extra>(write: SessionWrite<At & Extra>) => Statement<At & Extra>,
  bury: Burial<At> | undefined,
): SessionWrites<At> {
  const { attempt, lastError, processedAt, retryAfter } = table;
  return {
    remove: write(processedAt === undefined ? "delete" : { done: true }),
    ...lastError === undefined ? {} : { free: write({}) },
    ...retryAfter === undefined ? {} : { delay: write({ dueAfter: delay }) },
    ...attempt === undefined ? {} : { giveBack: write({ attempt: "give back" }) },
    ...bury === undefined ? {} : { bury },
  };
}

function delay({ delay }: { readonly delay: number }): number {
  return delay;
}
