import type { GuardedWrite, LeaseStatements, LeaseToken } from "../driver/dialect.ts";
import type { QueryResult } from "../driver/driver.ts";
import { run, runEach, type Steps } from "../driver/steps.ts";
import { DriverError } from "../errors.ts";
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

/** What became of a guarded write: whether the row was changed, or why it could not be. */
export type Written = { readonly changed: boolean } | { readonly error: unknown };

/**
 * Writes many rows, each under its own token, together. Where that fails, because a row cannot be
 * written or is no longer the token's, each is written by itself, so that no row suffers by another.
 */
export async function writeGuarded<G extends Guarded>(
  pool: Pool,
  { readId }: Pick<LeaseStatements, "readId">,
  writes: readonly G[],
): Promise<ReadonlyMap<G, Written>> {
  if (writes.length > 1) {
    try {
      const changed = await pool.transaction(() => writeTogether(readId, writes));
      return new Map(writes.map((write) => [write, { changed: changed.has(write) }]));
    } catch (error) {
      // Without a connection each of them would fail as well.
      if (error instanceof DriverError && error.kind === "disconnected") throw error;
    }
  }
  const written = new Map<G, Written>();
  for (const write of writes) written.set(write, await writeAlone(pool, write));
  return written;
}

async function writeAlone(pool: Pool, { write, values }: Guarded): Promise<Written> {
  try {
    return { changed: changedOf(await pool.run(write.one, values as never)) > 0 };
  } catch (error) {
    return { error };
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
