import type { QueryResult, Session, SqlRow, SqlValue } from "./driver.ts";
import { bind, type Statement } from "./statement.ts";

/** A statement to be run once for each set of parameters. */
export interface Step {
  /** The SQL. */
  readonly text: string;
  /** The parameters of each run. */
  readonly paramSets: readonly (readonly SqlValue[])[];
}

/**
 * The work of a transaction, written as steps: each yields a statement and is resumed with its
 * results. So a database in this process can run all of it in one turn of the event loop, between
 * which nothing else can come, and a server's client can wait for each answer.
 */
export type Steps<T> = Generator<Step, T, readonly QueryResult[]>;

/** Runs a statement; its rows. */
export function* query<Values>(
  statement: Statement<Values>,
  values: Values,
): Steps<readonly SqlRow[]> {
  return (yield* run(statement, values)).rows;
}

/** Runs a statement; its rows, and what it has changed. */
export function* run<Values>(statement: Statement<Values>, values: Values): Steps<QueryResult> {
  const [result] = yield* runEach(statement, [values]);
  return result!;
}

/** Runs a statement once for each set of values. */
export function* runEach<Values>(
  statement: Statement<Values>,
  valueSets: readonly Values[],
): Steps<readonly QueryResult[]> {
  return yield* runText(statement.text, valueSets.map((values) => bind(statement, values)));
}

/** Runs SQL once for each set of parameters. */
export function* runText(
  text: string,
  paramSets: readonly (readonly SqlValue[])[],
): Steps<readonly QueryResult[]> {
  return yield { text, paramSets };
}

/** Runs the statements of a step on a session that is in a transaction. */
export async function runStep(
  session: Session,
  { text, paramSets }: Step,
): Promise<readonly QueryResult[]> {
  const [only] = paramSets;
  if (paramSets.length !== 1) return await session.queryEach(text, paramSets);
  return [await session.query(text, only)];
}
