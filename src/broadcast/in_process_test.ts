import assert from "node:assert/strict";
import type { ChannelListener } from "../channel.ts";
import { Broadcast } from "./broadcast.ts";
import { inProcess } from "./in_process.ts";

Deno.test("broadcasts with the same channel, or one of the same name, reach each other", async () => {
  const shared = inProcess();
  const all = [shared, shared, inProcess("name"), inProcess("name"), inProcess()]
    .map((channel) => new Broadcast({ channels: [channel] }));
  const got: string[] = [];
  for (const [index, broadcast] of all.entries()) {
    broadcast.subscribe("topic", ({ message }) => void got.push(`${message} at ${index}`));
    await broadcast.open();
  }
  all[0]!.send("topic", "a");
  all[3]!.send("topic", "b");
  for (const broadcast of all) await broadcast.drain(1_000);
  assert.deepEqual(got.toSorted(), ["a at 0", "a at 1", "b at 2", "b at 3"]);
  // One that leaves does not close it for the other.
  await all[1]!.shutdown();
  all[0]!.send("topic", "c");
  for (const broadcast of all) await broadcast.shutdown();
  assert.deepEqual(got.slice(4), ["c at 0"]);
});

Deno.test("a listener that throws does not keep a text from the others", async () => {
  const channel = inProcess("throwing");
  const got: string[] = [];
  const listener = (receive: (text: string) => void): ChannelListener => ({
    receive,
    missed: () => {},
  });
  await channel.open(listener(() => {
    throw new Error("thrown");
  }));
  await channel.open(listener((text) => void got.push(text)));
  await channel.send("any text");
  await channel.close();
  await channel.send("nobody hears");
  assert.deepEqual(got, ["any text"]);
});
