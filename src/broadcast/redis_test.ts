import assert from "node:assert/strict";
import { withLog } from "../../testing/conformance/with_log.ts";
import { signalProcess } from "../../tools/servers/signal_process.ts";
import { startRedis } from "../../tools/servers/redis.ts";
import { testServer } from "../../tools/servers/test_server.ts";
import { ClosedError, DeclarationError } from "../errors.ts";
import { Broadcast } from "./broadcast.ts";
import { inProcess } from "./in_process.ts";
import { redis } from "./redis.ts";
import { RedisChannel } from "./redis_channel.ts";

const URL = Deno.env.get("HOLDFAST_TEST_REDIS");

Deno.test({
  name: "messages cross processes over Redis, in order, and arrive at the sender too",
  ignore: URL === undefined,
  async fn() {
    const channel = `holdfast ${crypto.randomUUID()}`;
    await using writer = new Broadcast({ channels: [redis({ url: URL!, channel }), inProcess()] });
    await using reader = new Broadcast({ channels: [redis({ url: URL!, channel })] });
    const got: unknown[] = [];
    const own: unknown[] = [];
    writer.subscribe("topic", ({ message }) => void own.push(message));
    const all = Promise.withResolvers<void>();
    reader.subscribe("topic", ({ message }) => {
      if (got.push(message) === 1_000) all.resolve();
    });
    await Promise.all([writer.open(), reader.open()]);
    for (let number = 0; number < 1_000; number++) writer.send("topic", number);
    await all.promise;
    assert.equal(await writer.drain(1_000), true);
    assert.deepEqual(got, Array.from({ length: 1_000 }, (_, number) => number));
    assert.deepEqual(own, got);
    assert.equal(reader.stats().received, 1_000);
  },
});

testServer(
  "Redis stops and comes back: senders go on, losses are counted, all is told of",
  () =>
    withLog(async (lines) => {
      await using server = await startRedis();
      await using writer = new Broadcast({ channels: [redis(server.url)] });
      await using reader = new Broadcast({ channels: [redis(server.url)] });
      const [got, missed] = [new Set<unknown>(), Promise.withResolvers<string>()];
      reader.subscribe("topic", ({ message }) => void got.add(message));
      reader.onMissed(missed.resolve);
      await Promise.all([writer.open(), reader.open()]);
      writer.send("topic", "before");
      await until(() => got.has("before"));
      await server.stop();
      for (let number = 0; number < 5; number++) writer.send("topic", number);
      const start = performance.now();
      assert.equal(await writer.drain(5_000), true);
      assert(performance.now() - start < 2_000, "a Redis that has stopped is found out at once");
      assert.deepEqual([writer.stats().failed, writer.stats().retried], [5, 10]);
      await server.restart();
      assert.equal(await missed.promise, "redis");
      await until(() => {
        writer.send("topic", "after");
        return got.has("after");
      });
      assert.deepEqual([...got], ["before", "after"]);
      const told = lines.filter(({ category }) => category[1] === "broadcast");
      const failing = told.filter(({ rawMessage }) => /messages are lost/.test(String(rawMessage)));
      assert.equal(failing.length, 1);
    }),
);

testServer("a Redis that is not there yet is connected to later, and the app goes on", async () => {
  await using server = await startRedis();
  await server.stop();
  await using broadcast = new Broadcast({ channels: [redis(server.url)] });
  const missed = Promise.withResolvers<string>();
  broadcast.onMissed(missed.resolve);
  await broadcast.open();
  assert.equal(broadcast.stats().channels[0]!.state, "opening");
  await server.restart();
  await missed.promise;
  const got = Promise.withResolvers<unknown>();
  broadcast.subscribe("topic", ({ message }) => got.resolve(message));
  broadcast.send("topic", "here");
  assert.equal(await got.promise, "here");
});

testServer(
  "a Redis that hangs is found out by a probe, and what was missed is told of",
  async () => {
    await using server = await startRedis();
    const channel = new RedisChannel({ url: server.url }, { probeInterval: 50 });
    const missed = Promise.withResolvers<void>();
    await channel.open({ receive: () => {}, missed: missed.resolve });
    signalProcess(server.pid, "SIGSTOP");
    try {
      await assert.rejects(channel.send("text"), /timed out|closed/i);
      await new Promise((resolve) => setTimeout(resolve, 3_000));
    } finally {
      signalProcess(server.pid, "SIGCONT");
    }
    await missed.promise;
    await channel.close();
  },
);

testServer(
  "a channel over Redis can be closed while it opens, while it is lost, and be opened again",
  async () => {
    await using server = await startRedis();
    const channel = redis(server.url);
    const listener = { receive: () => {}, missed: () => {} };
    await assert.rejects(channel.send("text"), ClosedError);
    const opening = assert.rejects(channel.open(listener));
    await channel.close();
    await opening;
    await channel.open(listener);
    await assert.rejects(channel.open(listener), DeclarationError);
    await server.stop();
    await channel.close();
    await assert.rejects(channel.open(listener), /Cannot connect to Redis/);
    await server.restart();
    await channel.open(listener);
    await channel.close();
  },
);

Deno.test("without ioredis a broadcast goes without Redis, with a warning", () =>
  withLog(async (lines) => {
    const load = () => Promise.reject(new TypeError("Could not resolve ioredis"));
    const channel = new RedisChannel({ url: "redis://127.0.0.1:1" }, { load });
    await using broadcast = new Broadcast({ channels: [channel, inProcess()] });
    await broadcast.open();
    broadcast.send("topic", 1);
    assert.equal(await broadcast.drain(1_000), true);
    assert.deepEqual(broadcast.stats().channels.map(({ state }) => state), ["skipped", "open"]);
    assert.match(String(lines[0]!.properties.error), /ioredis did not load.*deno add npm:ioredis/);
  }));

Deno.test("an address that cannot be one of Redis is refused, and not shown", () => {
  for (const url of ["", "127.0.0.1", "http://user:hush@127.0.0.1"]) {
    assert.throws(() => redis(url), (error) => {
      assert(error instanceof DeclarationError);
      assert(!error.message.includes("hush"));
      return true;
    });
  }
  assert.throws(() => redis({ url: "redis://127.0.0.1", channel: "" }), DeclarationError);
  assert.throws(() => redis({ url: "redis://127.0.0.1", chanel: "a" } as never), DeclarationError);
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20));
}
