import assert from "node:assert/strict";
import { Broadcast, postgresNotify } from "../broadcast/mod.ts";
import { Broker } from "../broker.ts";
import { postgres } from "./mod.ts";

const url = Deno.env.get("HOLDFAST_TEST_POSTGRES");

/** Waits, in real time, until something holds. */
async function until(holds: () => boolean): Promise<void> {
  const end = performance.now() + 20_000;
  while (!holds()) {
    if (performance.now() > end) throw new Error("It does not hold after 20 s");
    await new Promise((go) => setTimeout(go, 5));
  }
}

if (url === undefined) {
  Deno.test("Postgres: LISTEN and NOTIFY", () => {
    if (Deno.env.get("CI") === "true") throw new Error("HOLDFAST_TEST_POSTGRES is not set");
    console.log("skipped: Postgres (set HOLDFAST_TEST_POSTGRES to the address of a server)");
  });
} else {
  Deno.test("Postgres: what is notified arrives, also after the connection was cut, and nothing is left", async () => {
    const channel = `test_${crypto.randomUUID().replaceAll("-", "")}`;
    const driver = postgres(url);
    await driver.open();
    const [got, events]: [string[], string[]] = [[], []];
    const listening = await driver.listen!(channel, {
      receive: (payload) => void got.push(payload),
      lost: () => void events.push("lost"),
      restored: () => void events.push("restored"),
    });
    const session = await driver.session();
    const notify = (payload: string) =>
      session.query("SELECT pg_notify($1, $2)", [channel, payload]);
    await session.begin();
    await notify("rolled back");
    await session.rollback();
    await session.begin();
    await notify("committed");
    await notify("committed");
    await session.commit();
    await until(() => got.length === 1);
    await session.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = $1",
      [`LISTEN "${channel}"`],
    );
    await until(() => events.includes("restored"));
    await notify("again");
    await until(() => got.length === 2);
    assert.deepEqual(got, ["committed", "again"]);
    assert.deepEqual(events, ["lost", "restored"]);
    await listening.close();
    const { rows } = await session.query(
      "SELECT pid FROM pg_stat_activity WHERE query = $1",
      [`LISTEN "${channel}"`],
    );
    assert.deepEqual(rows, []);
    await session.release();
    await driver.close();
  });

  Deno.test("Postgres: a broadcast goes from one connected broker to another", async () => {
    const channel = `test_${crypto.randomUUID().replaceAll("-", "")}`;
    await using one = await new Broker(postgres(url)).connect();
    await using two = await new Broker(postgres(url)).connect();
    const here = new Broadcast({ channels: [postgresNotify(one, { channel })] });
    const there = new Broadcast({ channels: [postgresNotify(two, { channel })] });
    await here.open();
    await there.open();
    const got: unknown[] = [];
    there.subscribe("topic", ({ message }) => void got.push(message));
    here.send("topic", { n: 1 });
    here.send("topic", "x".repeat(9_000));
    await until(() => got.length === 2);
    assert.deepEqual(got, [{ n: 1 }, undefined]);
    await here.shutdown();
    await there.shutdown();
  });
}
