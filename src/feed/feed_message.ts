import type { ScopeKey, StoredEvent } from "../driver/dialect.ts";

/** The topic under which a scope's events are told: another one for each feed, tenant and scope. */
export function feedTopic(feed: string, { tenant, scope }: ScopeKey): string {
  return JSON.stringify(["feed", feed, tenant, scope]);
}

/** An event as it is told. */
export type FeedMessage = Omit<StoredEvent, "tenant" | "scope">;

/** The event of a message; `undefined` if there is none in it that could be one. */
export function readFeedMessage(message: unknown): FeedMessage | undefined {
  const { seq, id, entity, version, event, createdAt } = Object(message) as Partial<FeedMessage>;
  const isOne = Number.isSafeInteger(seq) && typeof id === "string" && typeof event === "string" &&
    typeof createdAt === "number" && (entity === null || typeof entity === "string") &&
    (version === null || typeof version === "number");
  return isOne ? { seq: seq!, id, entity, version, event, createdAt } : undefined;
}
