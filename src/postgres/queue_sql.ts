import type { Failure, QueueUse } from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import type { Role } from "../driver/roles.ts";
import type { Columns } from "./columns.ts";
import { Parameters } from "./parameters.ts";
import { Times } from "./times.ts";

/** One statement for one queue as it is written. It calls a row `t`. */
export class QueueSql<Values extends { readonly now: number }> {
  readonly columns: Columns;
  readonly parameters: Parameters<Values> = new Parameters();
  readonly times: Times<Values>;
  readonly #use: QueueUse;
  #rows: readonly string[] | undefined;

  constructor(columns: Columns, use: QueueUse) {
    this.columns = columns;
    this.times = new Times(columns, use.clock, this.parameters);
    this.#use = use;
  }

  /** What holds for the queue's rows that are not done. */
  get rows(): readonly string[] {
    // A parameter that is not used would have no type.
    return this.#rows ??= rowsOf(this.columns, this.#use, this.parameters);
  }

  /** What holds for rows whose due time has come. */
  get due(): readonly string[] {
    const { retryAfter, dueMayBeNull } = this.columns;
    if (retryAfter === undefined) return [];
    const due = `t.${retryAfter} <= ${this.times.now("retryAfter")}`;
    return [dueMayBeNull ? `(t.${retryAfter} IS NULL OR ${due})` : due];
  }

  /** A value of the caller as one of a role's column. */
  value(role: Role, of: (values: Values) => bigint | number | string): string {
    return this.columns.cast(role, this.parameters.add((values) => String(of(values))));
  }

  /** Sets the role `lastError` to the caller's error, if there is one; nothing without the role. */
  get failure(): readonly string[] {
    const { columns, parameters } = this;
    const { lastError } = columns;
    if (lastError === undefined) return [];
    const error = parameters.add((values) => columns.encodeError((values as Failure).error));
    return [`${lastError} = coalesce(${columns.cast("lastError", error)}, t.${lastError})`];
  }

  /** The statement, with all the parameters that were added. */
  statement(text: string): Statement<Values> {
    return this.parameters.statement(text);
  }
}

/** What holds for the queue's rows that are not done. */
export function rowsOf<Values>(
  columns: Columns,
  use: QueueUse,
  parameters: Parameters<Values>,
): readonly string[] {
  const { processedAt } = columns;
  return [
    ...inGroup(columns, use, parameters),
    ...(processedAt === undefined ? [] : [`t.${processedAt} IS NULL`]),
  ];
}

/** What holds for the rows of the queue's group. */
export function inGroup<Values>(
  columns: Columns,
  use: QueueUse,
  parameters: Parameters<Values>,
): readonly string[] {
  if (columns.group === undefined) return [];
  const group = columns.cast("group", parameters.add(() => use.group ?? ""));
  return [`t.${columns.group} = ${group}`];
}

/** Conditions as a WHERE clause; empty where there are none. */
export function where(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")} `;
}
