import { inRealTime, type LockObserver, stepsInThisContext } from "./clock.ts";
import type { QueryResult, Session } from "./driver/driver.ts";
import { bind, type Statement } from "./driver/statement.ts";
import { runStep, type Steps } from "./driver/steps.ts";

/** Runs one statement: I/O, which passes in real time. */
export function runOn<Values>(
  session: Session,
  database: LockObserver,
  statement: Statement<Values>,
  values: Values,
): Promise<QueryResult> {
  const params = bind(statement, values);
  return inRealTime(() => session.query(statement.text, params), statement.text, database);
}

/** Runs steps one by one, in the transaction that is open. */
export async function runSteps<T>(
  session: Session,
  database: LockObserver,
  steps: Steps<T>,
): Promise<T> {
  let next = steps.next();
  while (!next.done) {
    const step = next.value;
    next = steps.next(await inRealTime(() => runStep(session, step), step.text, database));
  }
  return next.value;
}

/** Runs steps as one transaction, in one turn, where the session can. */
export function transactAtOnce<T>(
  session: Session,
  database: LockObserver,
  makeSteps: () => Steps<T>,
): Promise<T> {
  const bound = stepsInThisContext(makeSteps);
  return inRealTime(() => session.transact!(bound), "BEGIN", database);
}
