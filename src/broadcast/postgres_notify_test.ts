import assert from "node:assert/strict";
import { Broker } from "../broker.ts";
import type { NotificationListener } from "../driver/listen.ts";
import { ClosedError, DeclarationError, DriverError } from "../errors.ts";
import { postgres } from "../postgres/mod.ts";
import { runningBrokers } from "../running_broker.ts";
import { Broadcast } from "./broadcast.ts";
import { type NotifyingBroker, postgresNotify } from "./postgres_notify.ts";

/** A broker that nothing is behind: what is notified is received by whoever listens. */
function brokerThatNotifies(): {
  broker: NotifyingBroker;
  listeners: Map<NotificationListener, string>;
} {
  const broker = new Broker(postgres("postgres://127.0.0.1:1/none"));
  const listeners = new Map<NotificationListener, string>();
  const running = {
    listen(channel: string, listener: NotificationListener) {
      listeners.set(listener, channel);
      const close = () => Promise.resolve(void listeners.delete(listener));
      return Promise.resolve({ close });
    },
    notify(channel: string, payload: string) {
      for (const [listener, own] of listeners) if (own === channel) listener.receive(payload);
      return Promise.resolve();
    },
  };
  runningBrokers.set(broker, { pool: running } as never);
  return { broker, listeners };
}

Deno.test("messages go over a broker's notifications, the long ones without themselves", async () => {
  const { broker, listeners } = brokerThatNotifies();
  const broadcast = new Broadcast({ channels: [postgresNotify(broker)] });
  const [got, missed]: [unknown[], string[]] = [[], []];
  broadcast.subscribe("topic", ({ message }) => void got.push(message));
  broadcast.onMissed((channel) => void missed.push(channel));
  await broadcast.open();
  assert.deepEqual([...listeners.values()], ["holdfast"]);
  broadcast.send("topic", "short");
  broadcast.send("topic", "x".repeat(8_000));
  await broadcast.drain(1_000);
  assert.deepEqual(got, ["short", undefined]);
  const [listener] = listeners.keys();
  listener!.lost(new DriverError("disconnected", "Connection lost"));
  assert.deepEqual(missed, []);
  listener!.restored();
  assert.deepEqual(missed, ["postgres notify"]);
  await broadcast.shutdown();
  assert.equal(listeners.size, 0);
});

Deno.test("a channel over NOTIFY needs an open broker, and is opened once", async () => {
  const listener = { receive: () => {}, missed: () => {} };
  const closed = new Broker(postgres("postgres://127.0.0.1:1/none"));
  await assert.rejects(postgresNotify(closed).open(listener), DeclarationError);
  const channel = postgresNotify(brokerThatNotifies().broker, { channel: "own" });
  await assert.rejects(channel.send("text"), ClosedError);
  await channel.open(listener);
  await assert.rejects(channel.open(listener), DeclarationError);
  await channel.send("text");
  await channel.close();
  await channel.close();
  await channel.open(listener);
  await channel.close();
  for (const name of ["", "a\0b", "x".repeat(64)]) {
    assert.throws(() => postgresNotify(closed, { channel: name }), DeclarationError);
  }
});
