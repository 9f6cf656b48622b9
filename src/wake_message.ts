/** That a queue has messages, as it is told to other processes. */
export interface WakeMessage {
  /** Its table, by the name that all descriptions of it have in common. */
  readonly table: string;
  /** Its group, where its table has groups; absent, any group of the table. */
  readonly group?: string;
  /** Who tells it, to whom it comes back; absent where that one is to hear it too. */
  readonly from?: string;
}

/** The text for a channel. A group that is long is left out: all groups of the table look then. */
export function writeWakeMessage({ table, group, from }: WakeMessage): string {
  const isShort = group !== undefined && group.length <= LONGEST_GROUP;
  return JSON.stringify({ wake: table, group: isShort ? group : undefined, from });
}

/** What has arrived; `undefined` if it is no wake: others may use the channel too. */
export function readWakeMessage(text: string): WakeMessage | undefined {
  const { wake, group, from } = Object(parse(text)) as Record<string, unknown>;
  if (typeof wake !== "string") return undefined;
  return {
    table: wake,
    ...(typeof group === "string" ? { group } : {}),
    ...(typeof from === "string" ? { from } : {}),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const LONGEST_GROUP = 500;
