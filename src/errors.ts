/** What every error of Holdfast is: it has a stable `code` and keeps its `cause`. */
export abstract class HoldfastError extends Error {
  /** Stable across versions, for programs; the message is for people. */
  abstract readonly code: string;

  /**
   * Takes the name of its class.
   *
   * @param message what was attempted, the current value, the fix
   */
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The delivery no longer owns its row: its lease ended, or another claim took it. */
export class LeaseLostError extends HoldfastError {
  /** Always `"lease_lost"`. */
  override readonly code = "lease_lost";
}

/** Something was asked of a broker or an app that is not running. */
export class ClosedError extends HoldfastError {
  /** Always `"closed"`. */
  override readonly code = "closed";
}

/** A declaration that cannot work: an unknown role, a form the database lacks, a missing state. */
export class DeclarationError extends HoldfastError {
  /** Always `"declaration"`. */
  override readonly code = "declaration";
}

/** A message that cannot be encoded or decoded, or that its schema refuses. */
export class PayloadError extends HoldfastError {
  /** Always `"payload"`. */
  override readonly code = "payload";
}

/** A publish that the database did not carry out. */
export class PublishError extends HoldfastError {
  /** Always `"publish"`. */
  override readonly code = "publish";
}

/** A second attempt to settle a delivery that is settled already. */
export class AlreadySettledError extends HoldfastError {
  /** Always `"already_settled"`. */
  override readonly code = "already_settled";
}

/** Why a delivery's signal aborts when the app stops before its handler has finished. */
export class ShutdownError extends HoldfastError {
  /** Always `"shutdown"`. */
  override readonly code = "shutdown";
}

/**
 * Why a delivery's signal aborts when its handler takes longer than the subscription's `timeout`, or
 * keeps the one writing transaction of a SQLite database open for longer than others can wait.
 */
export class TimeoutError extends HoldfastError {
  /** Always `"timeout"`. */
  override readonly code = "timeout";
}

/**
 * What went wrong in a database:
 *
 * - `conflict`: busy, deadlock, serialization, lock timeout; trying again may succeed
 * - `disconnected`: the connection is gone; trying again on another may succeed
 * - `unusable`: the database cannot be opened, or is no database
 * - `read-only`: the database cannot be written
 * - `constraint`: a row breaks a constraint of its table
 * - `missing`: a table or column does not exist
 * - `other`: anything else
 */
export type DriverErrorKind =
  | "conflict"
  | "disconnected"
  | "unusable"
  | "read-only"
  | "constraint"
  | "missing"
  | "other";

/** A statement or connection that failed; the client's own error is its `cause`. */
export class DriverError extends HoldfastError {
  /** Always `"driver"`. */
  override readonly code = "driver";
  /** What went wrong, the same word on every database. */
  readonly kind: DriverErrorKind;

  /** Wraps a client's error, given as `options.cause`. */
  constructor(kind: DriverErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** One thing that is wrong with a table, and how to mend it. */
export interface SchemaProblem {
  /** The table as it was described. */
  readonly table: string;
  /** The column, where the problem is one column's. */
  readonly column?: string;
  /** The queue whose subscription needs it, where there is one. */
  readonly subscription?: string;
  /** What is wrong, with what was found. */
  readonly problem: string;
  /** What to do. */
  readonly fix: string;
}

/** The tables are not as described. All problems are listed, not only the first. */
export class SchemaError extends HoldfastError {
  /** Always `"schema"`. */
  override readonly code = "schema";
  /** Every problem found. */
  readonly problems: readonly SchemaProblem[];

  /** Lists the problems in the message, one a line. */
  constructor(problems: readonly SchemaProblem[]) {
    super(
      `Cannot use the tables as described:\n${
        problems.map((each) => `- ${describeProblem(each)}`).join("\n")
      }`,
    );
    this.problems = problems;
  }
}

/** A problem as one line. */
export function describeProblem(
  { table, column, subscription, problem, fix }: SchemaProblem,
): string {
  const place = column === undefined ? `"${table}"` : `"${table}"."${column}"`;
  const whose = subscription === undefined ? "" : ` (subscription "${subscription}")`;
  return `${place}${whose}: ${problem}; ${fix}`;
}
