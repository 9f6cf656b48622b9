import type { FeedEvent } from "./feed_event.ts";
import type { Follower } from "./follower.ts";
import type { Ongoing } from "./ongoing.ts";

/**
 * The events of a follower as they are asked for. `return` ends it at once, also while the next event is
 * waited for, unlike that of a generator.
 *
 * @param enter runs what is asked for as part of the app
 */
export function following<Event>(
  follower: Follower<Event>,
  ongoing: Ongoing,
  enter: <T>(work: () => Promise<T>) => Promise<T>,
): AsyncIterableIterator<FeedEvent<Event>> {
  const events = follower.events();
  let leave = (): void => {};
  const next = async () => {
    try {
      const result = await ongoing.track(enter(() => events.next()));
      if (result.done) leave();
      return result;
    } catch (error) {
      leave();
      throw error;
    }
  };
  const iterator: AsyncIterableIterator<FeedEvent<Event>> = {
    next: () => {
      // Who never asks is never waited for.
      leave();
      leave = ongoing.add(() => follower.end());
      return next();
    },
    return: () => {
      leave();
      follower.end();
      return events.return();
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}
