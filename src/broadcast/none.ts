import type { Channel } from "../channel.ts";

/** A channel that carries nothing: for a process, or a test, that tells nobody. */
export function none(): Channel {
  const nothing = () => Promise.resolve();
  return { name: "none", open: nothing, send: nothing, close: nothing };
}
