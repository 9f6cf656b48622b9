import type { SqlRow } from "../driver/driver.ts";
import type { CountingUpdate, FeedStatements, NewEvent, NewState } from "../driver/dialect.ts";
import { query, run, type Steps } from "../driver/steps.ts";
import { DeclarationError } from "../errors.ts";
import type { FeedWritten } from "./feed_write.ts";
import { TenantError } from "./tenant_error.ts";
import { VersionConflictError } from "./version_conflict_error.ts";

/** A write that has been checked, with its JSON text. */
export interface EncodedWrite extends Pick<NewEvent, "tenant" | "scope" | "event" | "createdAt"> {
  /** Made for it unless `isOwnId`. */
  readonly id: string;
  /** Whether the id was given, and may have been written before. */
  readonly isOwnId: boolean;
  readonly entity: string | undefined;
  /** JSON text, `null` to delete it, `undefined` to leave it as it is. */
  readonly state: string | null | undefined;
  readonly expectedVersion: number | undefined;
}

/**
 * Writes an event and its entity's state. The scope's row comes first, and stays locked until the
 * transaction ends: so the order of numbers is the order of commits. What fails leaves the scope's number
 * as it was, though the transaction may go on.
 */
export function* writeSteps(statements: FeedStatements, write: EncodedWrite): Steps<FeedWritten> {
  const seq = yield* takeSeq(statements, write);
  let written: FeedWritten | undefined;
  try {
    written = yield* findWritten(statements, write);
    if (written === undefined) return yield* writeAt(seq, statements, write);
  } catch (error) {
    // A transaction that cannot go on has lost the number with all the rest.
    try {
      yield* run(statements.giveBackSeq, write);
    } catch {
      throw error;
    }
    throw error;
  }
  yield* run(statements.giveBackSeq, write);
  return written;
}

function* takeSeq(statements: FeedStatements, write: EncodedWrite): Steps<number> {
  const seq = yield* count(statements.takeSeq, write);
  if (seq !== undefined) return seq;
  yield* run(statements.addScope, write);
  const first = yield* count(statements.takeSeq, write);
  if (first !== undefined) return first;
  throw new TenantError(
    `Cannot write to scope "${write.scope}" as tenant "${write.tenant}": it belongs to another ` +
      `tenant; nothing was written; give scopes names that no other tenant has`,
  );
}

function* findWritten(
  statements: FeedStatements,
  { id, isOwnId, tenant, scope }: EncodedWrite,
): Steps<FeedWritten | undefined> {
  if (!isOwnId) return undefined;
  const [row] = yield* query(statements.findEvent, { id });
  if (row === undefined) return undefined;
  if (row.tenant !== tenant || row.scope !== scope) {
    throw new DeclarationError(
      `Cannot write event "${id}" to scope "${scope}": another scope has an event with this id; ` +
        `nothing was written; give each event an id of its own`,
    );
  }
  return { seq: Number(row.seq), id, ...versionOf(row), inserted: false };
}

function* writeAt(
  seq: number,
  statements: FeedStatements,
  write: EncodedWrite,
): Steps<FeedWritten> {
  const version = yield* writeState(seq, statements, write);
  const { tenant, scope, id, entity = null, event, createdAt } = write;
  const row = { tenant, scope, seq, id, entity, version: version ?? null, event, createdAt };
  yield* run(statements.insertEvent, row);
  return { seq, id, ...(version === undefined ? {} : { version }), inserted: true };
}

function* writeState(
  seq: number,
  statements: FeedStatements,
  { tenant, scope, entity, state, expectedVersion }: EncodedWrite,
): Steps<number | undefined> {
  if (entity === undefined || state === undefined) return undefined;
  const written: NewState = { tenant, scope, entity, seq, state };
  if (expectedVersion !== undefined) {
    const [row] = yield* query(statements.readVersion, written);
    const actual = row === undefined ? 0 : Number(row.version);
    if (actual !== expectedVersion) {
      const name = `entity "${entity}" of scope "${scope}"`;
      throw new VersionConflictError(name, expectedVersion, actual);
    }
  }
  const version = yield* count(statements.updateEntity, written);
  if (version !== undefined) return version;
  yield* run(statements.insertEntity, written);
  return 1;
}

/** The number that was counted; `undefined` if there is no such row. */
function* count<Values>(
  { update, read }: CountingUpdate<Values>,
  values: Values,
): Steps<number | undefined> {
  // How many rows have changed is not told in every transaction that a caller has opened.
  const { rows } = yield* run(update, values);
  const [row] = read === undefined ? rows : yield* query(read, values);
  return row === undefined ? undefined : Number(row.value);
}

function versionOf({ version }: SqlRow): Pick<FeedWritten, "version"> {
  return version === null ? {} : { version: Number(version) };
}
