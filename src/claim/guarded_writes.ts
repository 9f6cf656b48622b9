import type { GuardedWrite, LeaseStatements, LeaseToken } from "../driver/dialect.ts";
import type { QueryResult } from "../driver/driver.ts";
import { run, runEach, type Steps } from "../driver/steps.ts";
import type { Pool } from "../pool.ts";

/** One write under the guard of its row's token. */
export interface Guarded {
  readonly write: GuardedWrite<never>;
  readonly values: LeaseToken;
}

/** Makes a guarded write of any kind one of the common kind. */
export function guarded<Extra>(write: GuardedWrite<Extra>, values: LeaseToken & Extra): Guarded {
  return { write: write as GuardedWrite<never>, values };
}

/**
 * Writes many rows, each under its own token, together: all that could be written are, or an error
 * is thrown and none is.
 *
 * @returns those whose row was still the token's, and so was changed
 */
export async function writeGuarded<G extends Guarded>(
  pool: Pool,
  { readId }: Pick<LeaseStatements, "readId">,
  writes: readonly G[],
): Promise<ReadonlySet<G>> {
  const [only] = writes;
  if (writes.length === 1 && only !== undefined) {
    const result = await pool.run(only.write.one, only.values as never);
    return new Set(changedOf(result) > 0 ? [only] : []);
  }
  try {
    return await pool.transaction(() => writeTogether(readId, writes));
  } catch (error) {
    if (!(error instanceof SomeNotOurs)) throw error;
    return await pool.transaction(() => writeOneByOne(writes));
  }
}

function* writeTogether<G extends Guarded>(
  readId: LeaseStatements["readId"],
  writes: readonly G[],
): Steps<ReadonlySet<G>> {
  const changed = new Set<G>();
  for (const alike of Map.groupBy(writes, ({ write }) => write).values()) {
    for (const each of yield* writeAlike(readId, alike)) changed.add(each);
  }
  return changed;
}

/** In one statement where the database has one for many rows. */
function* writeAlike<G extends Guarded>(
  readId: LeaseStatements["readId"],
  alike: readonly G[],
): Steps<readonly G[]> {
  const { many } = alike[0]!.write;
  if (many === undefined || alike.length === 1) return [...yield* writeOneByOne(alike)];
  const result = yield* run(many, alike.map(({ values }) => values as never));
  if (changedOf(result) === alike.length) return alike;
  // A database that only counts cannot say which.
  if (result.rows.length === 0 && result.changes > 0) throw new SomeNotOurs();
  const ids = new Set(result.rows.map(readId));
  return alike.filter(({ values }) => ids.has(values.id));
}

function* writeOneByOne<G extends Guarded>(writes: readonly G[]): Steps<ReadonlySet<G>> {
  const changed = new Set<G>();
  for (const [{ one }, alike] of Map.groupBy(writes, ({ write }) => write)) {
    const results = yield* runEach(one, alike.map(({ values }) => values as never));
    alike.forEach((each, index) => {
      if (changedOf(results[index]!) > 0) changed.add(each);
    });
  }
  return changed;
}

function changedOf({ rows, changes }: QueryResult): number {
  return rows.length + changes;
}

/** Ends, and so undoes, a transaction in which a batch has changed fewer rows than it should. */
class SomeNotOurs extends Error {}
