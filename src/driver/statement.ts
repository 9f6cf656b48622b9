import type { SqlValue } from "./driver.ts";

/**
 * SQL text and, for each of its placeholders in order, how its value follows from what the caller
 * has. Built once, when a subscription opens, and bound for each run.
 */
export interface Statement<Values> {
  /** The SQL. */
  readonly text: string;
  /** One function for each placeholder. */
  readonly params: readonly ((values: Values) => SqlValue)[];
}

/** The parameters of one run of a statement. */
export function bind<Values>(statement: Statement<Values>, values: Values): readonly SqlValue[] {
  return statement.params.map((param) => param(values));
}
