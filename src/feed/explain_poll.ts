import type { FeedStatements, PollPlan } from "../driver/dialect.ts";
import type { Pool } from "../pool.ts";

/** How the database finds the events of a poll. Of few events some read all, though they have an index. */
export async function explainPoll(
  pool: Pool,
  statements: FeedStatements,
  limit: number,
): Promise<PollPlan> {
  const values = { tenant: "explain", scope: "explain", after: 0 };
  const { preferIndexes } = statements;
  const plan = statements.readPlan(await pool.query(statements.explain(limit), values));
  if (plan.index !== undefined || preferIndexes === undefined) return plan;
  const transaction = await pool.hold();
  try {
    await transaction.run(preferIndexes, undefined);
    const { rows } = await transaction.run(statements.explain(limit), values);
    return statements.readPlan(rows);
  } finally {
    await transaction.rollback();
  }
}
