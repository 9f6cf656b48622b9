import type { FeedStatements, PollPlan } from "../driver/dialect.ts";
import type { Pool } from "../pool.ts";

/** How a poll finds its events. */
export interface FeedPlan {
  /** Whether it reads no other events than those that it returns. */
  readonly isServed: boolean;
  /** The index that it uses, if it does. */
  readonly index?: string;
  /** The plan in the database's own words. */
  readonly plan: string;
  /** What to do, unless it is served. */
  readonly fix?: string;
}

/** Asks the database how a poll finds its events, and says what to do if no index serves it. */
export async function explainFeed(
  pool: Pool,
  statements: FeedStatements,
  { table, limit }: { readonly table: string; readonly limit: number },
): Promise<FeedPlan> {
  const { index, text } = await explainPoll(pool, statements, limit);
  if (index !== undefined) return { isServed: true, index, plan: text };
  return {
    isServed: false,
    plan: text,
    fix:
      `no index of "${table}" serves the poll: give it the primary key (tenant, scope, seq), or ` +
      `a unique index of these columns in this order`,
  };
}

/** Of few events some databases read all, though they have an index. */
async function explainPoll(
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
