import { json } from "../json.ts";
import type { Payload } from "../payload.ts";
import type { FeedOptions } from "./feed_options.ts";

/** How a feed keeps events and states as JSON. */
export interface FeedCodecs<Event, State> {
  readonly event: Payload<Event>;
  readonly state: Payload<State>;
}

/** By the schemas that the feed has been declared with. */
export function feedCodecs<Event, State>(
  { event, state }: FeedOptions<Event, State>,
): FeedCodecs<Event, State> {
  return {
    event: event === undefined ? json("event") : json("event", event),
    state: state === undefined ? json("state") : json("state", state),
  };
}
