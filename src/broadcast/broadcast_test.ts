import assert from "node:assert/strict";
import { withLog } from "../../testing/conformance/with_log.ts";
import { ClosedError, DeclarationError, PayloadError } from "../errors.ts";
import { Broadcast } from "./broadcast.ts";
import { ChannelForTest } from "./channel_for_test.ts";
import { inProcess } from "./in_process.ts";
import { MissingPackageError } from "../missing_package_error.ts";
import { none } from "./none.ts";

Deno.test("messages arrive in order, each once, at the subscribers of their topic", async () => {
  await using broadcast = new Broadcast({ channels: [inProcess()] });
  const got: unknown[] = [];
  broadcast.subscribe<number>("numbers", ({ message, topic, id, truncated }) => {
    got.push(message);
    assert.deepEqual([topic, truncated], ["numbers", false]);
    assert.match(id, /^[0-9a-f-]{36}$/);
  });
  await broadcast.open();
  for (let number = 0; number < 500; number++) broadcast.send("numbers", number);
  broadcast.send("others", "x");
  assert.equal(broadcast.stats().queued, 501);
  assert.equal(await broadcast.drain(1_000), true);
  assert.deepEqual(got, Array.from({ length: 500 }, (_, number) => number));
  const { sent, received, duplicates, queued, channels } = broadcast.stats();
  assert.deepEqual([sent, received, duplicates, queued], [501, 501, 0, 0]);
  assert.deepEqual(channels.map(({ channel, state }) => [channel, state]), [[
    "in process",
    "open",
  ]]);
  assert.equal(broadcast.lastMessage()?.message, "x");
  assert(broadcast.latencyPercentile(99)! >= 0);
});

Deno.test("a subscription ends by its function, and by using", async () => {
  await using broadcast = new Broadcast({ channels: [inProcess()] });
  const got: unknown[] = [];
  await broadcast.open();
  const end = broadcast.subscribe("topic", () => void got.push("function"));
  {
    using _ending = broadcast.subscribe("topic", () => void got.push("using"));
    broadcast.send("topic", 1);
    await broadcast.drain(1_000);
  }
  end();
  end();
  broadcast.send("topic", 2);
  await broadcast.drain(1_000);
  assert.deepEqual(got, ["function", "using"]);
  assert(broadcast.latencyPercentile(100)! < 1_000);
});

Deno.test("a message that arrives by several channels is handed on once, each topic by itself", async () => {
  await using broadcast = new Broadcast({ channels: [inProcess(), inProcess(), none()] });
  const got: unknown[] = [];
  broadcast.subscribe("a", ({ id }) => void got.push(`a ${id}`));
  broadcast.subscribe("b", ({ id }) => void got.push(`b ${id}`));
  await broadcast.open();
  broadcast.send("a", null, { id: "1" });
  broadcast.send("b", null, { id: "1" });
  broadcast.send("a", null, { id: "1" });
  await broadcast.drain(1_000);
  assert.deepEqual(got, ["a 1", "b 1"]);
  const { received, duplicates, sent, channels } = broadcast.stats();
  assert.deepEqual([received, duplicates, sent], [2, 4, 9]);
  assert.equal(channels.length, 3);
});

Deno.test("a subscriber that throws or rejects is counted and logged, and hurts nobody", () =>
  withLog(async (lines) => {
    await using broadcast = new Broadcast({ channels: [inProcess()] });
    const got: unknown[] = [];
    broadcast.subscribe("topic", () => {
      throw new Error("thrown");
    });
    broadcast.subscribe("topic", () => Promise.reject(new Error("rejected")));
    broadcast.subscribe("topic", ({ message }) => void got.push(message));
    await broadcast.open();
    broadcast.send("topic", 1);
    broadcast.send("topic", 2);
    await broadcast.drain(1_000);
    assert.deepEqual(got, [1, 2]);
    const { subscriberErrors, failed, sent } = broadcast.stats();
    assert.deepEqual([subscriberErrors, failed, sent], [4, 0, 2]);
    const errors = lines.map(({ properties }) => (properties.error as Error).message);
    assert.deepEqual(errors, ["thrown", "rejected", "thrown", "rejected"]);
  }));

Deno.test("a full queue: one direct attempt each, then messages are dropped and the writer goes on", () =>
  withLog(async (lines) => {
    const channel = new ChannelForTest();
    const broadcast = new Broadcast({ channels: [channel], queue: 3 });
    await broadcast.open();
    const gate = Promise.withResolvers<void>();
    channel.whenSending = (text) => text.includes('"message":0}') ? gate.promise : undefined;
    // The worker has the first in hand, three wait, the others are sent past them.
    for (let number = 0; number < 6; number++) {
      broadcast.send("topic", number);
      if (number === 0) await nextTask();
    }
    await nextTask();
    assert.deepEqual(channel.messages, [4, 5]);
    channel.whenSending = (text) => {
      if (text.includes('"message":6}')) throw new Error("refused");
      return gate.promise;
    };
    broadcast.send("topic", 6);
    await nextTask();
    assert.deepEqual(countsOf(broadcast), {
      sent: 2,
      retried: 0,
      failed: 0,
      dropped: 1,
      queued: 3,
    });
    for (let number = 7; number < 30; number++) broadcast.send("topic", number);
    assert.equal(broadcast.stats().dropped, 1 + 23 - 16);
    gate.resolve();
    assert.equal(await broadcast.drain(1_000), true);
    assert.deepEqual(channel.messages.filter((each) => Number(each) < 4), [0, 1, 2, 3]);
    assert.equal(lines.filter(({ level }) => level === "warning").length, 1);
    await broadcast.shutdown();
  }));

Deno.test("sending is tried again twice, and what fails is told of once until it works again", () =>
  withLog(async (lines) => {
    const channel = new ChannelForTest();
    await using broadcast = new Broadcast({ channels: [channel], retryPause: 5 });
    await broadcast.open();
    let attempts = 0;
    channel.whenSending = () => {
      if (++attempts % 3 !== 0) throw new Error("not yet");
    };
    broadcast.send("topic", 1);
    await broadcast.drain(1_000);
    assert.deepEqual(countsOf(broadcast), {
      sent: 1,
      retried: 2,
      failed: 0,
      dropped: 0,
      queued: 0,
    });
    assert.deepEqual(lines, []);
    channel.whenSending = () => {
      throw "never";
    };
    broadcast.send("topic", 2);
    broadcast.send("topic", 3);
    await broadcast.drain(1_000);
    assert.deepEqual(countsOf(broadcast), {
      sent: 1,
      retried: 6,
      failed: 2,
      dropped: 0,
      queued: 0,
    });
    channel.whenSending = () => {};
    broadcast.send("topic", 4);
    await broadcast.drain(1_000);
    assert.deepEqual(lines.map(({ level }) => level), ["warning", "info"]);
    assert.deepEqual(channel.messages, [1, 4]);
  }));

Deno.test("a message too long for a channel goes without itself, so that its subscriber looks for it", async () => {
  const channel = new ChannelForTest(200);
  await using broadcast = new Broadcast({ channels: [channel] });
  const got: unknown[] = [];
  broadcast.subscribe("topic", ({ message, truncated }) => void got.push([message, truncated]));
  await broadcast.open();
  broadcast.send("topic", "ä".repeat(200), { id: "long" });
  broadcast.send("topic", "short");
  await broadcast.drain(1_000);
  assert.deepEqual(got, [[undefined, true], ["short", false]]);
  const { sentAt, ...rest } = JSON.parse(channel.sent[0]!);
  assert.deepEqual(rest, { id: "long", topic: "topic", truncated: true });
  assert.equal(typeof sentAt, "number");
  assert.equal(broadcast.stats().truncated, 1);
});

Deno.test("what others send over a channel is ignored", async () => {
  const channel = new ChannelForTest();
  await using broadcast = new Broadcast({ channels: [channel] });
  broadcast.subscribe("topic", () => assert.fail());
  await broadcast.open();
  const texts = ["", "{", "null", "7", '"topic"', "{}", '{"id":"1","topic":"topic","sentAt":1}'];
  for (const text of texts) channel.arrive(text);
  assert.equal(broadcast.stats().ignored, texts.length);
});

Deno.test("what is sent before it is open waits; after shutdown it is dropped; it can be opened again", async () => {
  const channel = new ChannelForTest();
  const broadcast = new Broadcast({ channels: [channel] });
  broadcast.send("topic", 1);
  assert.equal(await broadcast.drain(5), false);
  await broadcast.open();
  await assert.rejects(broadcast.open(), ClosedError);
  await broadcast.shutdown();
  await broadcast.shutdown();
  assert.deepEqual(channel.messages, [1]);
  broadcast.send("topic", 2);
  assert.equal(broadcast.stats().dropped, 1);
  assert.equal(broadcast.stats().channels[0]!.state, "closed");
  await broadcast.open();
  broadcast.send("topic", 3);
  await broadcast.shutdown();
  assert.deepEqual(channel.messages, [1, 3]);
  assert.deepEqual([channel.opened, channel.closed, channel.listeners.size], [2, 2, 0]);
});

Deno.test("a shutdown waits as long as it may, then drops what waits and closes the channels", async () => {
  const channel = new ChannelForTest();
  const broadcast = new Broadcast({ channels: [channel] });
  await broadcast.open();
  channel.whenSending = () => new Promise(() => {});
  for (let number = 0; number < 3; number++) broadcast.send("topic", number);
  await broadcast.shutdown(20);
  assert.deepEqual(countsOf(broadcast), { sent: 0, retried: 0, failed: 1, dropped: 2, queued: 0 });
  assert.equal(channel.closed, 1);
});

Deno.test("a channel whose package is absent is left out with a warning", () =>
  withLog(async (lines) => {
    const channel = new ChannelForTest();
    channel.whenOpening = () => {
      throw new MissingPackageError("test", "no-such-package");
    };
    await using broadcast = new Broadcast({ channels: [channel, inProcess()] });
    const got: unknown[] = [];
    broadcast.subscribe("topic", ({ message }) => void got.push(message));
    broadcast.send("topic", 1);
    await broadcast.open();
    broadcast.send("topic", 2);
    assert.equal(await broadcast.drain(1_000), true);
    assert.deepEqual(got, [1, 2]);
    assert.deepEqual(broadcast.stats().channels.map(({ state, sent }) => [state, sent]), [
      ["skipped", 0],
      ["open", 2],
    ]);
    assert.deepEqual(lines.map(({ level }) => level), ["warning"]);
    assert.match(String(lines[0]!.properties.error), /deno add npm:no-such-package/);
  }));

Deno.test("a channel that cannot be opened now is opened later, and then all may have been missed", async () => {
  const channel = new ChannelForTest();
  channel.whenOpening = () => {
    if (channel.opened < 3) throw new Error("not there");
  };
  await using broadcast = new Broadcast({ channels: [channel] });
  const missed = Promise.withResolvers<string>();
  broadcast.onMissed(missed.resolve);
  await broadcast.open();
  broadcast.send("topic", 1);
  await broadcast.drain(1_000);
  assert.deepEqual(countsOf(broadcast), { sent: 0, retried: 0, failed: 1, dropped: 0, queued: 0 });
  assert.equal(await missed.promise, "test");
  broadcast.send("topic", 2);
  await broadcast.drain(1_000);
  assert.deepEqual(channel.messages, [2]);
});

Deno.test("a channel that can never be opened ends the opening, and the others are closed", async () => {
  const [bad, good] = [new ChannelForTest(), new ChannelForTest()];
  bad.whenOpening = () => {
    throw new DeclarationError("Cannot work here");
  };
  const broadcast = new Broadcast({ channels: [bad, good] });
  await assert.rejects(broadcast.open(), /Cannot work here/);
  assert.equal(good.listeners.size, 0);
  bad.whenOpening = () => {};
  await broadcast.open();
  await broadcast.shutdown();
});

Deno.test("a channel that is shut down while it opens is closed all the same", async () => {
  const channel = new ChannelForTest();
  const gate = Promise.withResolvers<void>();
  channel.whenOpening = () => gate.promise;
  const broadcast = new Broadcast({ channels: [channel] });
  const opening = broadcast.open();
  const closing = broadcast.shutdown();
  gate.resolve();
  await Promise.all([opening, closing]);
  assert.equal(channel.listeners.size, 0);
  assert.equal(broadcast.stats().channels[0]!.state, "closed");
});

Deno.test("whoever asked is told when a channel was not connected and is again", async () => {
  const channel = new ChannelForTest();
  await using broadcast = new Broadcast({ channels: [channel] });
  const got: string[] = [];
  broadcast.onMissed(() => {
    throw new Error("thrown");
  });
  const end = broadcast.onMissed((name) => void got.push(name));
  await broadcast.open();
  channel.reconnect();
  end();
  channel.reconnect();
  assert.deepEqual(got, ["test"]);
  assert.equal(broadcast.stats().subscriberErrors, 2);
});

Deno.test("what cannot work is refused", () => {
  const make = (options: object) => () => new Broadcast(options as never);
  assert.throws(make({}), DeclarationError);
  assert.throws(make({ channels: [] }), DeclarationError);
  assert.throws(make({ channels: [undefined] }), DeclarationError);
  const channel = none();
  assert.throws(make({ channels: [channel, channel] }), /"none" twice/);
  assert.throws(make({ channels: [channel], que: 1 }), /que is not an option/);
  assert.throws(make({ channels: [channel], queue: 0 }), RangeError);
  assert.throws(make({ channels: [channel], retries: 0.5 }), RangeError);
  assert.throws(make({ channels: [channel], retryPause: -1 }), RangeError);
  const broadcast = new Broadcast({ channels: [channel] });
  assert.throws(() => broadcast.send("", 1), TypeError);
  assert.throws(() => broadcast.send("topic", 1, { id: "" }), TypeError);
  assert.throws(() => broadcast.send("topic", undefined), PayloadError);
  assert.throws(() => broadcast.send("topic", 1n), PayloadError);
  assert.throws(() => broadcast.latencyPercentile(0), RangeError);
  assert.equal(broadcast.latencyPercentile(99), undefined);
  assert.equal(broadcast.lastMessage(), undefined);
});

function countsOf(broadcast: Broadcast): object {
  const { sent, retried, failed, dropped, queued } = broadcast.stats();
  return { sent, retried, failed, dropped, queued };
}

function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
