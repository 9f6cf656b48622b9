import { databaseNow, uniqueId } from "../clock.ts";
import { DeclarationError, PayloadError } from "../errors.ts";
import type { Payload } from "../payload.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import { asError } from "../thrown.ts";
import { checkName } from "./check_name.ts";
import { checkScope } from "./check_scope.ts";
import type { FeedCodecs } from "./feed_codecs.ts";
import type { FeedWrite } from "./feed_write.ts";
import type { EncodedWrite } from "./write_steps.ts";

/**
 * A write as it is stored. Nothing has been written when it cannot be.
 *
 * @throws {TenantError} without a tenant
 * @throws {PayloadError} if the event or the state has no JSON form, or its schema refuses it
 * @throws {DeclarationError} if anything else of it cannot be
 */
export async function encodeWrite<Event, State>(
  feed: string,
  write: FeedWrite<Event, State>,
  codecs: FeedCodecs<Event, State>,
): Promise<EncodedWrite> {
  const what = `Cannot write to feed "${feed}"`;
  refuseUnknownOptions(what, write, MEMBERS);
  const { tenant, scope } = checkScope(what, write);
  const { id, entity, state, expectedVersion } = write;
  const place = `${what}, scope "${scope}"`;
  if (id !== undefined) checkName(place, "id", id);
  if (entity !== undefined) checkName(place, "entity", entity);
  checkEntity(place, write as FeedWrite);
  return {
    tenant,
    scope,
    id: id ?? uniqueId(),
    isOwnId: id !== undefined,
    entity,
    event: await encode(`${place}, the event`, codecs.event, write.event),
    state: await encodeState(place, codecs.state, state),
    expectedVersion,
    createdAt: Math.floor(databaseNow()),
  };
}

function checkEntity(place: string, { entity, state, expectedVersion }: FeedWrite): void {
  if (state !== undefined && entity === undefined) {
    throw new DeclarationError(`${place}: a state needs the entity that has it; give { entity }`);
  }
  if (expectedVersion === undefined) return;
  if (state === undefined) {
    throw new DeclarationError(
      `${place}: a version can be expected only where a state is written; give { entity, state }`,
    );
  }
  if (Number.isSafeInteger(expectedVersion) && expectedVersion >= 0) return;
  throw new DeclarationError(
    `${place}: expectedVersion is ${String(expectedVersion)}; give a whole number from 0`,
  );
}

async function encodeState<State>(
  place: string,
  codec: Payload<State>,
  state: State | null | undefined,
): Promise<string | null | undefined> {
  if (state === undefined) return undefined;
  return state === null ? null : await encode(`${place}, the state`, codec, state);
}

async function encode<T>(place: string, codec: Payload<T>, value: T): Promise<string> {
  try {
    return await codec.encode(value) as string;
  } catch (cause) {
    const { message } = asError(cause, "its schema");
    throw new PayloadError(`${place}: ${message}; nothing was written`, { cause });
  }
}

const MEMBERS: readonly (keyof FeedWrite)[] = [
  "tenant",
  "scope",
  "event",
  "id",
  "entity",
  "state",
  "expectedVersion",
];
