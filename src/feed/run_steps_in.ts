import type { QueryResult } from "../driver/driver.ts";
import type { Step, Steps } from "../driver/steps.ts";
import type { OpenTransaction } from "../held_transaction.ts";

/** Runs steps in a transaction that somebody else has opened, and ends. What a step throws, it may catch. */
export async function runStepsIn<T>(transaction: OpenTransaction, steps: Steps<T>): Promise<T> {
  let next = steps.next();
  while (!next.done) {
    let results: readonly QueryResult[];
    try {
      results = await runStep(transaction, next.value);
    } catch (error) {
      next = steps.throw(error);
      continue;
    }
    next = steps.next(results);
  }
  return next.value;
}

async function runStep(
  transaction: OpenTransaction,
  { text, paramSets }: Step,
): Promise<readonly QueryResult[]> {
  const results: QueryResult[] = [];
  for (const values of paramSets) {
    const params = values.map((value) => () => value);
    results.push(await transaction.run({ text, params }, undefined));
  }
  return results;
}
