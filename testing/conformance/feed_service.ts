import { Feed, type FeedEvent, type FeedOptions } from "../../src/feed/mod.ts";
import { App, Broker, type Driver, TestApp } from "./holdfast.ts";
import { LocalBroadcast } from "./local_broadcast.ts";

/** What happens in the feed of the suite. */
export interface Happening {
  readonly n: number;
}

/** A service with a feed, and with a broadcast that a test can switch off. */
export interface FeedService {
  readonly broker: Broker;
  readonly feed: Feed<Happening, { readonly name: string }>;
  readonly broadcast: LocalBroadcast;
  readonly app: App;
}

/** The service over a driver. */
export function feedService(
  driver: Driver,
  options: Partial<FeedOptions<Happening, { readonly name: string }>> = {},
): FeedService {
  const broker = new Broker(driver);
  const broadcast = new LocalBroadcast();
  const feed = new Feed<Happening, { readonly name: string }>("worlds", {
    broker,
    createTables: true,
    broadcast,
    ...options,
  });
  const app = new App({ name: "suite", version: "1.0.0" }).withBroker(broker).withComponent(feed);
  return { broker, feed, broadcast, app };
}

/** The service, started on virtual time. */
export async function startFeed(
  driver: Driver,
  options: Partial<FeedOptions<Happening, { readonly name: string }>> = {},
): Promise<FeedService & AsyncDisposable & { readonly test: TestApp }> {
  const service = feedService(driver, options);
  const test = await TestApp.start(service.app);
  return { ...service, test, [Symbol.asyncDispose]: () => test[Symbol.asyncDispose]() };
}

/** Where the suite writes unless it says otherwise. */
export const EARTH = { tenant: "acme", scope: "earth" } as const;

/** Collects what a follower is given, while a test goes on. */
export class Follow<Event> {
  /** The events so far. */
  readonly events: FeedEvent<Event>[] = [];
  /** Resolves when there are no more, with the error if there was one. */
  readonly ended: Promise<unknown>;
  readonly #iterator: AsyncIterableIterator<FeedEvent<Event>>;

  /** Begins at once. */
  constructor(iterator: AsyncIterableIterator<FeedEvent<Event>>) {
    this.#iterator = iterator;
    this.ended = this.#collect();
  }

  /** The numbers of the events so far. */
  get seqs(): readonly number[] {
    return this.events.map(({ seq }) => seq);
  }

  /** Waits until there are so many, in real time. */
  async has(count: number): Promise<void> {
    const end = performance.now() + 20_000;
    while (this.events.length < count) {
      if (performance.now() > end) throw new Error(`There are ${this.events.length} of ${count}`);
      await new Promise((go) => setTimeout(go, 1));
    }
  }

  /** Ends it. */
  async end(): Promise<void> {
    await this.#iterator.return!();
    await this.ended;
  }

  async #collect(): Promise<unknown> {
    try {
      for await (const event of this.#iterator) this.events.push(event);
    } catch (error) {
      return error;
    }
  }
}
