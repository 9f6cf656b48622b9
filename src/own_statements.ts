import type { Form } from "./driver/form.ts";
import { DeclarationError } from "./errors.ts";
import { refuseUnknownOptions } from "./refuse_unknown_options.ts";

/**
 * The service's own SQL for single events of a queue; whatever is not given stays built in. Values
 * stand in it as `:name`, as listed with each; times are in the form of the table's own columns. What
 * writes a row must write it only while it is still the delivery's, and change or return one row: if
 * it does not, the delivery has lost its row.
 *
 * Columns are returned under their own names, as `SELECT *` does.
 */
export interface OwnStatements {
  /**
   * Finds rows to claim, in order: `:limit`, `:now`, `:group`. In the row lock form it locks them
   * (`FOR UPDATE SKIP LOCKED`) and returns all columns that are described; in the lease form it
   * returns their ids, locked likewise on a server, and the built-in claim takes them; in the advisory
   * lock form it returns the ids and the columns of the lock's key, of which `claim` gives one page.
   */
  readonly claim?: string;
  /** Reads what a claimed row holds for its handler: `:id`, `:now`. */
  readonly fetch?: string;
  /**
   * Ends a message that is done: `:id`, `:now`; `:attempt`, what its column holds while the row is
   * claimed; of a lease `:expiry`, and `:latest`, the latest expiry that may have been written.
   */
  readonly ack?: string;
  /** Ends a message that is dropped: as `ack`, and `:error`. */
  readonly drop?: string;
  /** Makes the row claimable again at once: as `drop`. */
  readonly retry?: string;
  /** Makes the row claimable again later: as `drop`, and `:due`, `:delay` in milliseconds. */
  readonly retryAfter?: string;
  /** Gives the message up but keeps it: as `drop`. Without it the option `deadLetter` is needed. */
  readonly deadLetter?: string;
  /** Moves the end of a lease: as `ack`, and `:until`. Lease form only. */
  readonly renew?: string;
  /**
   * Takes the lock of a row's key for the session, without waiting, so that it is shared with other
   * code: `:key`; returns one value, true or not 0 if it was free. Advisory lock form on servers only,
   * and only with `unlock`.
   */
  readonly lock?: string;
  /** Gives that lock back: `:key`; returns likewise whether it was held. */
  readonly unlock?: string;
  /**
   * Inserts a message: `:id`, `:payload`, `:headers`, `:group`, `:key`, `:uniqueKey`, `:priority`,
   * `:due`, `:now`; returns the id, on MySQL and MariaDB nothing.
   */
  readonly publish?: string;
}

/** What the values of an event's statement are called. */
export const VALUES_OF: Readonly<Record<keyof OwnStatements, readonly string[]>> = {
  claim: ["limit", "now", "group"],
  fetch: ["id", "now"],
  ack: ["id", "now", "attempt", "expiry", "latest"],
  drop: ["id", "now", "attempt", "expiry", "latest", "error"],
  retry: ["id", "now", "attempt", "expiry", "latest", "error"],
  retryAfter: ["id", "now", "attempt", "expiry", "latest", "error", "due", "delay"],
  deadLetter: ["id", "now", "attempt", "expiry", "latest", "error"],
  renew: ["id", "now", "attempt", "expiry", "latest", "until"],
  lock: ["key"],
  unlock: ["key"],
  publish: ["id", "payload", "headers", "group", "key", "uniqueKey", "priority", "due", "now"],
};

/** SQL up to a value, and the value's name; none after the last. */
export interface SqlPiece {
  readonly text: string;
  readonly name: string | undefined;
}

/**
 * The pieces of SQL with `:name` values. What is in quotes or comments, and `::` of a cast, is no
 * value.
 */
export function piecesOf(sql: string): readonly SqlPiece[] {
  const pieces: SqlPiece[] = [];
  let start = 0;
  for (const match of sql.matchAll(TOKENS)) {
    const { name } = match.groups!;
    if (name === undefined) continue;
    pieces.push({ text: sql.slice(start, match.index), name });
    start = match.index + match[0].length;
  }
  return [...pieces, { text: sql.slice(start), name: undefined }];
}

/**
 * Refuses statements that could not run.
 *
 * @throws {DeclarationError} if an event or a value is unknown, or does not go with the form
 */
export function checkStatements(table: string, form: Form, statements: OwnStatements): void {
  const cannot = `Cannot use the statements of "${table}"`;
  if (typeof statements !== "object" || statements === null) {
    throw new DeclarationError(`${cannot}: ${String(statements)} is none; give { ack: "…", … }`);
  }
  refuseUnknownOptions(cannot, statements, Object.keys(VALUES_OF));
  for (const [event, sql] of Object.entries(statements) as [keyof OwnStatements, unknown][]) {
    if (sql === undefined) continue;
    if (typeof sql !== "string" || sql.trim() === "") {
      throw new DeclarationError(`${cannot}: ${event} is ${JSON.stringify(sql)}; give SQL`);
    }
    for (const { name } of piecesOf(sql)) {
      if (name === undefined || VALUES_OF[event].includes(name)) continue;
      throw new DeclarationError(
        `${cannot}: ${event} has no value :${name}; it has ` +
          VALUES_OF[event].map((each) => `:${each}`).join(", "),
      );
    }
  }
  const { lock, unlock, renew } = statements;
  if ((lock === undefined) !== (unlock === undefined)) {
    throw new DeclarationError(`${cannot}: lock and unlock go together; give both or neither`);
  }
  if (lock !== undefined && form !== "advisory lock") {
    throw new DeclarationError(
      `${cannot}: lock needs the advisory lock form; give the option advisoryLock, the lock's key`,
    );
  }
  if (renew !== undefined && form !== "lease") {
    throw new DeclarationError(`${cannot}: renew needs the lease form; give the role lockedUntil`);
  }
}

/** Quoted text and names, comments, casts; then a value. */
const TOKENS =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|\/\*[\s\S]*?\*\/|::|:(?<name>[A-Za-z]\w*)/g;
