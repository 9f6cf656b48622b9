/** The groups that are drained. */
export const GROUPS: readonly string[] = Array.from({ length: 20 }, (_, n) => `group ${n}`);
/** The group whose first message waits for an hour. */
export const BLOCKED = "blocked";
/** That message's name. */
export const HEAD = "head";
