import assert from "node:assert/strict";
import {
  Feed,
  type FeedWrite,
  TenantError,
  VersionConflictError,
  WatermarkError,
} from "../../src/feed/mod.ts";
import { EARTH, feedService, Follow, type Happening, startFeed } from "./feed_service.ts";
import { Broker, PayloadError, SchemaError, TimeoutError } from "./holdfast.ts";
import { inOwnTransaction } from "./in_own_transaction.ts";
import type { ConformanceTest } from "./test_database.ts";

type Write = FeedWrite<Happening, { readonly name: string }>;

/** How a feed writes, numbers, reads and follows. */
export const feedTests: readonly ConformanceTest[] = [
  {
    name: "feed: events are numbered from 1 in their scope, and states have versions",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed } = on;
      const made = await feed.write({
        ...EARTH,
        event: { n: 1 },
        entity: "sea",
        state: { name: "Ä 🌊" },
        expectedVersion: 0,
      });
      assert.deepEqual([made.seq, made.version, made.inserted], [1, 1, true]);
      await feed.write({ ...EARTH, event: { n: 2 }, entity: "land", state: { name: "land" } });
      await feed.write({ ...EARTH, event: { n: 3 }, entity: "sea", state: { name: "sea" } });
      await feed.write({ tenant: "acme", scope: "mars", event: { n: 1 } });
      await feed.write({ ...EARTH, event: { n: 4 }, entity: "land", state: null });
      assert.deepEqual(await feed.snapshot(EARTH), {
        seq: 4,
        entities: [{ entity: "sea", version: 2, seq: 3, state: { name: "sea" } }],
      });
      assert.deepEqual(await feed.entity({ ...EARTH, entity: "sea" }), {
        entity: "sea",
        version: 2,
        seq: 3,
        state: { name: "sea" },
      });
      assert.equal(await feed.entity({ ...EARTH, entity: "land" }), undefined, "deleted");
      assert.equal(await feed.entity({ ...EARTH, entity: "sky" }), undefined, "never written");
      assert.equal(await feed.head({ tenant: "acme", scope: "mars" }), 1);
      assert.equal(await feed.head({ tenant: "acme", scope: "venus" }), 0);
      const events = await feed.pollOnce(EARTH);
      assert.deepEqual(
        events.map(({ seq, event, entity, version }) => [seq, event.n, entity, version]),
        [
          [1, 1, "sea", 1],
          [2, 2, "land", 1],
          [3, 3, "sea", 2],
          [4, 4, "land", 2],
        ],
      );
      assert.equal(events[0]?.id, made.id);
      assert.equal(events[0]?.createdAt.getTime(), on.test.time.now);
      assert.deepEqual((await feed.pollOnce({ ...EARTH, from: 3 })).map(({ seq }) => seq), [4]);
      assert.deepEqual(await feed.snapshot({ tenant: "acme", scope: "mars" }), {
        seq: 1,
        entities: [],
      });
    },
  },
  {
    name:
      "feed: a stale version is a conflict, and takes no number, also in a transaction that goes on",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed, broker } = on;
      const state = { name: "sea" };
      const write: Write = { ...EARTH, event: { n: 1 }, entity: "sea", state };
      await feed.write({ ...write, expectedVersion: 0 });
      const isConflict = (error: unknown) =>
        error instanceof VersionConflictError && error.expected === 0 && error.actual > 0;
      await assert.rejects(feed.write({ ...write, expectedVersion: 0 }), isConflict);
      await assert.rejects(feed.write({ ...write, expectedVersion: 7 }), VersionConflictError);
      await broker.transaction(async (tx) => {
        await assert.rejects(feed.write({ ...write, expectedVersion: 0 }, { tx }), isConflict);
        await feed.write({ ...write, event: { n: 2 }, expectedVersion: 1 }, { tx });
      });
      await inOwnTransaction(database, async (tx) => {
        if (database.address === undefined) return;
        await assert.rejects(feed.write({ ...write, expectedVersion: 0 }, { tx }), isConflict);
        await feed.write({ ...write, event: { n: 3 }, expectedVersion: 2 }, { tx });
      });
      const events = await feed.pollOnce(EARTH);
      const shared = database.address === undefined ? [] : [3];
      assert.deepEqual(events.map(({ seq }) => seq), [1, 2, ...shared]);
      assert.deepEqual(events.map(({ event }) => event.n), [1, 2, ...shared]);
    },
  },
  {
    name:
      "feed: what is rolled back is not told, leaves no gap, and what is committed is told after it",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed, broker, broadcast } = on;
      await assert.rejects(broker.transaction(async (tx) => {
        await feed.write({ ...EARTH, event: { n: 1 } }, { tx });
        throw new Error("No");
      }));
      assert.deepEqual(broadcast.sent, []);
      await broker.transaction(async (tx) => {
        await feed.write({ ...EARTH, event: { n: 2 } }, { tx });
        assert.deepEqual(broadcast.sent, [], "not before the commit");
      });
      assert.equal(broadcast.sent.length, 1);
      const events = await feed.pollOnce(EARTH);
      assert.deepEqual(events.map(({ seq, event }) => [seq, event.n]), [[1, 2]]);
    },
  },
  {
    name: "feed: an id is written once, and belongs to one scope",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed } = on;
      const write: Write = {
        ...EARTH,
        id: "job-1",
        event: { n: 1 },
        entity: "sea",
        state: { name: "sea" },
      };
      const first = await feed.write(write);
      assert.deepEqual(await feed.write(write), { ...first, inserted: false });
      assert.equal(on.broadcast.sent.length, 1);
      await assert.rejects(feed.write({ ...write, scope: "mars" }), /another scope has an event/);
      assert.equal((await feed.write({ ...EARTH, event: { n: 2 } })).seq, 2);
    },
  },
  {
    name: "feed: without its tenant nothing is read or written",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed } = on;
      await feed.write({ ...EARTH, event: { n: 1 }, entity: "sea", state: { name: "sea" } });
      const callsOf = (key: { tenant: string; scope: string }) => [
        () => feed.write({ ...key, event: { n: 2 } }),
        () => feed.write({ ...key, event: { n: 2 }, entity: "sea", state: null }),
        () => feed.pollOnce(key),
        async () => {
          for await (const _ of feed.follow(key)) throw new Error("A row");
        },
        () => feed.run(key, () => assert.fail("A row")),
        () => feed.waitFor({ ...key, id: "1", timeout: 10 }),
        () => feed.head(key),
        () => feed.snapshot(key),
        () => feed.entity({ ...key, entity: "sea" }),
      ];
      const others: readonly unknown[] = [
        "other",
        "",
        undefined,
        null,
        7,
        "acme ",
        " acme",
        "ACME",
        "a\0",
      ];
      for (const tenant of others) {
        for (const call of callsOf({ tenant: tenant as string, scope: "earth" })) {
          await assert.rejects(async () => await call(), TenantError, String(tenant));
        }
      }
      for (const call of callsOf({ tenant: "acme", scope: undefined as never })) {
        await assert.rejects(async () => await call(), /the scope is undefined/);
      }
      assert.equal(await feed.head(EARTH), 1);
      assert.equal((await feed.snapshot(EARTH)).entities.length, 1);
    },
  },
  {
    name: "feed: a watermark is a seq that the scope has reached; anything else is refused unmoved",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed } = on;
      await feed.write({ ...EARTH, event: { n: 1 } });
      const refused: readonly unknown[] = [
        "2026-12-01T00:00:00Z",
        "2026-12-01 00:00:00+05:30",
        "1",
        "",
        -1,
        0.5,
        NaN,
        Infinity,
        2,
        2 ** 53,
        1n,
        null,
        new Date(0),
        {},
        [],
        true,
      ];
      for (const given of refused) {
        const place = { ...EARTH, from: given as number };
        await assert.rejects(() => feed.pollOnce(place), WatermarkError, String(given));
        await assert.rejects(() => feed.run(place, () => assert.fail()), WatermarkError);
        await assert.rejects(async () => await feed.follow(place).next(), WatermarkError);
      }
      assert.deepEqual(await feed.pollOnce({ ...EARTH, from: 1 }), []);
      assert.equal((await feed.pollOnce(EARTH)).length, 1);
    },
  },
  {
    name: "feed: followers see every event once and in order, told at once",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed } = on;
      await feed.write({ ...EARTH, event: { n: 1 } });
      await feed.write({ ...EARTH, event: { n: 2 } });
      const [all, rest] = [
        new Follow(feed.follow(EARTH)),
        new Follow(feed.follow({ ...EARTH, from: 1 })),
      ];
      await all.has(2);
      await rest.has(1);
      for (let n = 3; n <= 10; n++) await feed.write({ ...EARTH, event: { n } });
      await all.has(10);
      await rest.has(9);
      assert.deepEqual(all.events.map(({ event }) => event.n), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      assert.deepEqual(rest.seqs, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
      assert.deepEqual(
        new Set(all.events.slice(2).map(({ source }) => source)),
        new Set(["broadcast"]),
      );
      await all.end();
      await rest.end();
      const { written, recovered, missed } = feed.stats();
      assert.deepEqual({ written, recovered, missed }, { written: 10, recovered: 0, missed: 0 });
    },
  },
  {
    name: "feed: what nobody tells of arrives within one poll interval, and is counted",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed, broadcast, test } = on;
      const following = new Follow(feed.follow(EARTH));
      await test.advance({ seconds: 1 });
      await feed.write({ ...EARTH, event: { n: 1 } });
      await following.has(1);
      broadcast.isOff = true;
      await feed.write({ ...EARTH, event: { n: 2 } });
      await feed.write({ ...EARTH, event: { n: 3 } });
      await test.advance({ seconds: 3 });
      await following.has(3);
      assert.deepEqual(following.seqs, [1, 2, 3]);
      assert.deepEqual(following.events.map(({ source }) => source), ["broadcast", "poll", "poll"]);
      assert.equal(feed.stats().missed, 2);
      const late = broadcast.sent[1]!;
      broadcast.arrive(late.topic, late.message);
      assert.equal(feed.stats().missed, 1);
      assert.equal(feed.stats().duplicated, 1);
      await following.end();
    },
  },
  {
    name:
      "feed: an event is handed on only if it is the next; a gap, a fragment or a loss is polled for at once",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed, broadcast } = on;
      const following = new Follow(feed.follow(EARTH));
      await feed.write({ ...EARTH, event: { n: 1 } });
      await following.has(1);
      const topic = broadcast.sent[0]!.topic;
      broadcast.isOff = true;
      await feed.write({ ...EARTH, event: { n: 2 } });
      await feed.write({ ...EARTH, event: { n: 3 } });
      broadcast.arrive(topic, broadcast.sent[2]!.message);
      await following.has(3);
      await feed.write({ ...EARTH, event: { n: 4 } });
      broadcast.arrive(topic, undefined);
      await following.has(4);
      await feed.write({ ...EARTH, event: { n: 5 } });
      broadcast.miss();
      await following.has(5);
      // What is told and is not there is nothing, and what is told twice is told once.
      broadcast.arrive(topic, { ...broadcast.sent[4]!.message as object, seq: 99 });
      broadcast.arrive(topic, broadcast.sent[1]!.message);
      broadcast.arrive(topic, { seq: "six" });
      broadcast.isOff = false;
      await feed.write({ ...EARTH, event: { n: 6 } });
      await following.has(6);
      assert.deepEqual(following.events.map(({ event }) => event.n), [1, 2, 3, 4, 5, 6]);
      await following.end();
    },
  },
  {
    name:
      "feed: a transaction that commits late keeps its scope's order, and no other scope waiting",
    needs: "processes",
    async run(database) {
      const { app, feed } = feedService(database.connect());
      await using _ = await app.start();
      const following = new Follow(feed.follow(EARTH));
      const late: Promise<unknown>[] = [];
      await inOwnTransaction(database, async (tx) => {
        await feed.write({ ...EARTH, event: { n: 1 } }, { tx });
        late.push(feed.write({ ...EARTH, event: { n: 2 } }));
        // Where there is one writer, all of the process waits for it.
        if (database.locksRows) {
          await feed.write({ tenant: "acme", scope: "mars", event: { n: 1 } });
          assert.equal(await feed.head({ tenant: "acme", scope: "mars" }), 1);
          assert.deepEqual(await feed.pollOnce(EARTH), []);
        }
      });
      await Promise.all(late);
      await following.has(2);
      assert.deepEqual(following.events.map(({ event }) => event.n), [1, 2]);
      await following.end();
    },
  },
  {
    name:
      "feed: ten writers of one scope leave no gap, and followers see what each has written in its order",
    async run(database) {
      const { app, feed } = feedService(database.connect());
      await using _ = await app.start();
      const following = new Follow(feed.follow(EARTH));
      await Promise.all(Array.from({ length: 10 }, async (_, writer) => {
        for (let n = 0; n < 20; n++) await feed.write({ ...EARTH, event: { n: writer * 100 + n } });
      }));
      await following.has(200);
      assert.deepEqual(following.seqs, Array.from({ length: 200 }, (_, index) => index + 1));
      for (let writer = 0; writer < 10; writer++) {
        const own = following.events.map(({ event }) => event.n)
          .filter((n) => Math.floor(n / 100) === writer);
        assert.deepEqual(own, Array.from({ length: 20 }, (_, n) => writer * 100 + n));
      }
      await following.end();
    },
  },
  {
    name:
      "feed: writes to several scopes are all made or none, and two such writers do not block each other",
    async run(database) {
      const { app, feed } = feedService(database.connect());
      await using _ = await app.start();
      const scopes = ["c", "a", "b"];
      const writes = scopes.map((scope, n): Write => ({ tenant: "acme", scope, event: { n } }));
      await Promise.all(
        Array.from(
          { length: 10 },
          (_, index) => feed.writeMany(index % 2 === 0 ? writes : writes.toReversed()),
        ),
      );
      for (const scope of scopes) assert.equal(await feed.head({ tenant: "acme", scope }), 10);
      const other: Write = { tenant: "other", scope: "a", event: { n: 1 } };
      await assert.rejects(feed.writeMany([...writes, other]), TenantError);
      for (const scope of scopes) assert.equal(await feed.head({ tenant: "acme", scope }), 10);
      const written = await feed.writeMany([writes[0]!, writes[1]!, writes[0]!]);
      assert.deepEqual(written.map(({ seq }) => seq), [11, 11, 12]);
    },
  },
  {
    name:
      "feed: run ends in time, when told, or when aborted, and gives the watermark to go on from",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed, test } = on;
      await feed.write({ ...EARTH, event: { n: 1 } });
      await feed.write({ ...EARTH, event: { n: 2 } });
      const seen: number[] = [];
      const handle = ({ event }: { event: Happening }) => void seen.push(event.n);
      const running = feed.run({ ...EARTH, timeout: { seconds: 10 } }, handle);
      await test.advance({ seconds: 10 });
      assert.deepEqual(await running, { watermark: 2, events: 2, reason: "timeout" });
      assert.equal(feed.stats().timeouts, 1);
      const told = feed.run({ ...EARTH, from: 2, stopOnNotify: true }, handle);
      await test.advance({ seconds: 1 });
      await feed.write({ ...EARTH, event: { n: 3 } });
      const { reason, watermark } = await told;
      assert.equal(reason, "notified");
      const abort = new AbortController();
      const aborted = feed.run({ ...EARTH, from: watermark, signal: abort.signal }, handle);
      await test.advance({ seconds: 1 });
      abort.abort();
      assert.equal((await aborted).reason, "aborted");
      assert.deepEqual(seen, [1, 2, 3].slice(0, seen.length));
      const failing = feed.run(EARTH, () => {
        throw new Error("It failed");
      });
      await assert.rejects(failing, /It failed/);
    },
  },
  {
    name: "feed: an event is waited for by its id",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed, broadcast, test } = on;
      const waiting = feed.waitFor({ ...EARTH, id: "one" });
      await feed.write({ ...EARTH, event: { n: 1 }, id: "one" });
      assert.equal((await waiting).event.n, 1);
      broadcast.isOff = true;
      const polled = feed.waitFor({ ...EARTH, id: "two" });
      await test.advance({ seconds: 1 });
      await feed.write({ ...EARTH, event: { n: 2 }, id: "two" });
      await test.advance({ seconds: 3 });
      assert.equal((await polled).seq, 2);
      const never = assert.rejects(
        feed.waitFor({ ...EARTH, id: "never", timeout: { seconds: 5 } }),
        TimeoutError,
      );
      await test.advance({ seconds: 6 });
      await never;
    },
  },
  {
    name: "feed: tables that are missing are named with what creates them, and that creates them",
    async run(database) {
      const driver = database.connect();
      const { app } = feedService(driver, { createTables: false });
      const error = await app.start().then(() => assert.fail(), (error) => error);
      const cause = error instanceof SchemaError ? error : error.cause as SchemaError;
      assert(cause instanceof SchemaError, String(error));
      assert.equal(cause.problems.length, 3);
      if (database.address === undefined) return;
      const broker = await new Broker(driver).connect();
      const name = driver.name.toLowerCase() as "sqlite";
      const feed = new Feed<Happening>("worlds", { broker });
      const other = database.connect();
      await other.open();
      const session = await other.session();
      for (const text of feed.ddl(name).split(";\n").filter((text) => text !== "")) {
        await session.query(text);
      }
      await session.release();
      await other.close();
      assert.equal((await feed.write({ ...EARTH, event: { n: 1 } })).seq, 1);
      await broker.close();
    },
  },
  {
    name: "feed: its poll is served by an index, and it is said where that is missing",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed, test } = on;
      const plan = await feed.explain();
      assert(plan.isServed, plan.plan);
      await test.query("DROP TABLE worlds_events");
      const { text } = withoutKey(
        feed.ddl(on.broker.driver.name.toLowerCase() as "sqlite"),
      );
      await test.query(text);
      const scanned = await feed.explain();
      assert.equal(scanned.isServed, false, scanned.plan);
      assert.match(scanned.fix!, /primary key \(tenant, scope, seq\)/);
    },
  },
  {
    name: "feed: what has no JSON form is refused, and nothing is written",
    async run(database) {
      await using on = await startFeed(database.connect());
      const { feed } = on;
      for (const event of [{ n: NaN }, { n: 1n }, undefined, () => 1]) {
        await assert.rejects(feed.write({ ...EARTH, event } as never), PayloadError);
      }
      const refused: readonly object[] = [
        { event: { n: 1 }, state: { name: "x" } },
        { event: { n: 1 }, expectedVersion: 1 },
        { event: { n: 1 }, entity: "sea", state: null, expectedVersion: -1 },
        { event: { n: 1 }, entity: "" },
        { event: { n: 1 }, id: "x".repeat(191) },
        { event: { n: 1 }, colour: "blue" },
      ];
      for (const write of refused) {
        await assert.rejects(feed.write({ ...EARTH, ...write } as never), { code: "declaration" });
      }
      assert.equal(await feed.head(EARTH), 0);
    },
  },
  {
    name: "feed: followers end when the app stops",
    async run(database) {
      const { app, feed } = feedService(database.connect());
      const running = await app.start();
      await feed.write({ ...EARTH, event: { n: 1 } });
      const following = new Follow(feed.follow(EARTH));
      const waiting = assert.rejects(feed.waitFor({ ...EARTH, id: "never" }), { code: "closed" });
      const run = feed.run(EARTH, () => {});
      await following.has(1);
      await running.stop();
      assert.equal(await following.ended, undefined);
      await waiting;
      assert.equal((await run).reason, "closed");
      await assert.rejects(() => feed.head(EARTH), { code: "closed" });
    },
  },
];

function withoutKey(ddl: string): { readonly text: string } {
  const text = ddl.split(";\n").find((each) => each.includes("worlds_events"))!;
  return { text: text.replace(/,\s*PRIMARY KEY \(tenant, scope, seq\)/, "") };
}
