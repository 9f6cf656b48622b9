import assert from "node:assert/strict";
import postgresJs from "postgres";
import { Broker } from "@holdfast/inbox";
import { postgres } from "@holdfast/inbox/postgres";
import { TestApp } from "@holdfast/inbox/testing";
import { book, CREATE, LOCK, service, transfers } from "./by_hand.ts";

const server = Deno.env.get("HOLDFAST_TEST_POSTGRES");

Deno.test({
  name: "transfers are booked by own SQL, under a lock that other code holds too",
  ignore: server === undefined && Deno.env.get("CI") !== "true",
  async fn() {
    const name = `holdfast_${crypto.randomUUID().replaceAll("-", "")}`;
    const admin = postgresJs(server!, { max: 1, fetch_types: false });
    await admin.unsafe(`CREATE DATABASE ${name}`);
    const address = new URL(server!);
    address.pathname = `/${name}`;
    const other = postgresJs(address.href, { max: 1, fetch_types: false });
    try {
      for (const create of CREATE) await other.unsafe(create);
      await other`INSERT INTO accounts VALUES (1, 0, false), (2, 0, false), (3, 0, true)`;
      await other`INSERT INTO transfers (account, cents) VALUES (1, 5), (1, 70), (2, 9), (3, 1)`;
      // Somebody else holds the lock of account 1.
      const [held] = await other.unsafe(`SELECT ${LOCK} AS locked`, ["1"]);
      assert.equal(held!.locked, true);
      {
        await using test = await TestApp.startLive(service(postgres(address)));
        await test.advance({ milliseconds: 500 });
        assert.deepEqual(test.subscriber(book).received().map(({ cents }) => cents), [9]);
        await other`SELECT pg_advisory_unlock(1, hashtext('account 1'))`;
        while (test.deliveries.length < 3) await test.advance({ milliseconds: 100 });
        await test.settled();
        assert.deepEqual(test.subscriber(book).received().map(({ cents }) => cents), [9, 70, 5]);
      }
      const balances = await other`SELECT id, cents FROM accounts ORDER BY id`;
      assert.deepEqual(balances.map(({ cents }) => Number(cents)), [75, 9, 0]);
      const states = await other`SELECT state FROM transfers ORDER BY id`;
      assert.deepEqual(states.map(({ state }) => state), ["booked", "booked", "booked", "new"]);
      await using broker = await new Broker(postgres(address)).connect();
      const { id } = await broker.publish(transfers.queue(), { account: 2, cents: -4 });
      assert.equal(id, 5n);
    } finally {
      await other.end();
      await admin.unsafe(`DROP DATABASE ${name} WITH (FORCE)`);
      await admin.end();
    }
  },
});
