import assert from "node:assert/strict";
import { mails, type Order, ORDERS } from "../examples/transactions.ts";
import { TestApp } from "../testing/mod.ts";
import { App } from "./app.ts";
import { Broker } from "./broker.ts";
import { bytes } from "./bytes.ts";
import type { MessageId } from "./driver/dialect.ts";
import type { Driver, QueryAdapter, SqlRow } from "./driver/driver.ts";
import type { Form } from "./driver/form.ts";
import { inbox } from "./inbox.ts";
import { ack } from "./outcome.ts";
import type { PublishOptions } from "./publish_options.ts";

/** A broker whatever its database is. */
type AnyBroker<Tx> = Broker<string, Form, Tx>;

/** A client of a database, made and closed by the test. */
export interface ClientInTest<Tx> extends AsyncDisposable {
  /** Places an order by the example of this client. */
  place(broker: AnyBroker<Tx>, order: Order): Promise<MessageId>;
  /**
   * Runs work in a transaction of the client, which is committed when it resolves and else rolled
   * back. `write` runs a statement of the caller in it.
   */
  transaction(
    work: (tx: Tx | QueryAdapter, write: (text: string) => Promise<unknown>) => Promise<void>,
  ): Promise<void>;
}

/** A database of the test's own. */
export interface ClientDatabase<Tx> extends AsyncDisposable {
  /** A driver for a broker on it. */
  connect(): Driver<string, Form, Tx>;
  /** A statement after which the first id of the table `mails` is `firstId`. */
  readonly startIds: string;
  /** The first id. */
  readonly firstId: bigint;
  /** Opens the client that is tried. */
  open(): Promise<ClientInTest<Tx>> | ClientInTest<Tx>;
}

/** What is promised of every client. */
export interface ClientPromise {
  /** As a sentence. */
  readonly name: string;
  /** Rejects if the promise is broken. */
  run<Tx>(database: ClientDatabase<Tx>): Promise<void>;
}

/** What a message that is published in a transaction of a client promises. */
export const CLIENT_PROMISES: readonly ClientPromise[] = [
  {
    name: "the example places an order with its mail, and of a second one of its number neither",
    async run(database) {
      await using at = await Place.make(database);
      const id = await at.client.place(at.broker, { id: 1, item: "a 'pear'?" });
      assert.equal(id, database.firstId);
      await assert.rejects(at.client.place(at.broker, { id: 1, item: "an apple" }));
      assert.deepEqual(await at.mails(), [[id, { order: 1 }]]);
      assert.deepEqual(await at.query("SELECT item, mail FROM orders"), [
        { item: "a 'pear'?", mail: database.firstId },
      ]);
    },
  },
  {
    name: "what is published is there with the caller's own row once it is committed",
    async run(database) {
      await using at = await Place.make(database);
      const ids: MessageId[] = [];
      await at.client.transaction(async (tx, write) => {
        ids.push((await at.broker.publish(mails, { order: 1 }, in_(tx))).id);
        const many = await at.broker.publishMany(mails, ORDERS_2_TO_6, in_(tx));
        assert(many.every(({ inserted }) => inserted));
        ids.push(...many.map(({ id }) => id));
        await write("INSERT INTO orders VALUES (1, 'pear', NULL)");
        assert.deepEqual(await at.mails(), []);
      });
      assert(ids.every((id) => typeof id === "bigint"));
      assert.deepEqual(
        await at.mails(),
        ids.map((id, index) => [id, { order: index + 1 }]),
      );
      assert.equal((await at.query("SELECT id FROM orders")).length, 1);
    },
  },
  {
    name: "what is published goes with the caller's own row when it is rolled back",
    async run(database) {
      await using at = await Place.make(database);
      const failing = at.client.transaction(async (tx, write) => {
        await at.broker.publish(mails, { order: 1 }, in_(tx));
        await at.broker.publishMany(mails, ORDERS_2_TO_6, in_(tx));
        await write("INSERT INTO orders VALUES (1, 'pear', NULL)");
        throw new Error("Out of pears");
      });
      await assert.rejects(failing, /Out of pears/);
      assert.deepEqual(await at.mails(), []);
      assert.deepEqual(await at.query("SELECT id FROM orders"), []);
    },
  },
  {
    name: "a key that is there already says whose it is, and the transaction goes on",
    async run(database) {
      await using at = await Place.make(database);
      const before = await at.broker.publish(mails, { order: 1 }, { uniqueKey: "before" });
      await at.client.transaction(async (tx, write) => {
        const publish = (order: number, uniqueKey: string) =>
          at.broker.publish(mails, { order }, { ...in_(tx), uniqueKey });
        const first = await publish(2, "k");
        assert.equal(first.inserted, true);
        assert.deepEqual(await publish(3, "k"), { id: first.id, inserted: false });
        assert.deepEqual(await publish(4, "before"), { id: before.id, inserted: false });
        const many = await at.broker.publishMany(mails, ORDERS_2_TO_6, {
          ...in_(tx),
          each: ({ order }) => ({ uniqueKey: order % 2 === 0 ? "k" : `${order}` }),
        });
        assert.deepEqual(many.map(({ inserted }) => inserted), [false, true, false, true, false]);
        assert.equal(many[0]?.id, first.id);
        await write("INSERT INTO orders VALUES (1, 'pear', NULL)");
      });
      const orders = (await at.mails()).map(([, { order }]) => order);
      assert.deepEqual(orders, [1, 2, 3, 5]);
      assert.equal((await at.query("SELECT id FROM orders")).length, 1);
    },
  },
  {
    name: "a table of which nothing is known yet is looked at in the transaction itself",
    async run(database) {
      await using at = await Place.make(database);
      await using broker = await new Broker(database.connect()).connect();
      await at.client.transaction(async (tx, write) => {
        await write("INSERT INTO orders VALUES (1, 'pear', NULL)");
        await broker.publish(mails, { order: 1 }, in_(tx));
      });
      assert.deepEqual(await at.mails(), [[database.firstId, { order: 1 }]]);
    },
  },
  {
    name: "what is published is delivered",
    async run(database) {
      const send = mails.subscribe(() => ack());
      const broker = new Broker(database.connect()).createTables(mails.inbox).include(send);
      await using app = await TestApp.start(new App({ name: "shop" }).withBroker(broker));
      await using client = await database.open();
      await client.transaction(async (tx) => {
        await broker.publish(mails, { order: 1 }, in_(tx));
      });
      await app.advance({ seconds: 2 });
      app.subscriber(send).assertCalledOnce().assertReceived({ order: 1 }).assertSettled(ack());
    },
  },
  {
    name: "every role and all bytes are written as they are outside of a transaction",
    async run(database) {
      const queue = PARCELS.queue("a 'queue'?");
      const broker = new Broker(database.connect()).createTables(PARCELS);
      await using _ = await broker.connect();
      await using client = await database.open();
      const publishAll = async (options: PublishOptions) => {
        await broker.publish(queue, ALL_BYTES, { ...EVERYTHING, ...options } as typeof EVERYTHING);
        await broker.publishMany(queue, [ALL_BYTES, NO_BYTES], options as typeof EVERYTHING);
      };
      await publishAll({});
      await client.transaction((tx) => publishAll({ tx }));
      const rows = await query(broker, "SELECT * FROM parcels ORDER BY id");
      const contents: readonly SqlRow[] = rows.map((row) => ({ ...row, id: null }));
      assert.equal(rows.length, 6);
      assert.deepEqual(rows[3]?.payload, ALL_BYTES);
      assert.deepEqual(contents[3], contents[0]);
      for (const [index, row] of contents.entries()) {
        const { payload, due } = contents[index % 3]!;
        assert.deepEqual(row.payload, payload);
        assert(index % 3 > 0 || row.due === due);
      }
    },
  },
];

/** A broker and a client on one database, with both tables. */
class Place<Tx> implements AsyncDisposable {
  readonly broker: AnyBroker<Tx>;
  readonly client: ClientInTest<Tx>;

  private constructor(broker: AnyBroker<Tx>, client: ClientInTest<Tx>) {
    this.broker = broker;
    this.client = client;
  }

  static async make<Tx>(database: ClientDatabase<Tx>): Promise<Place<Tx>> {
    const broker = await new Broker(database.connect()).createTables(mails.inbox).connect();
    for (const text of [ORDERS, database.startIds]) await query(broker, text);
    return new Place(broker, await database.open());
  }

  /** The ids and messages of the mails, by id. */
  async mails(): Promise<readonly (readonly [id: unknown, mail: { order: number }])[]> {
    const rows = await this.query("SELECT id, payload FROM mails ORDER BY id");
    return rows.map(({ id, payload }) => [id, JSON.parse(String(payload))]);
  }

  query(text: string): Promise<readonly SqlRow[]> {
    return query(this.broker, text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
    await this.broker.close();
  }
}

/** The option, typed as the one of a broker whose transactions are of a type that is not known. */
function in_<Tx>(tx: Tx | QueryAdapter): { readonly tx: Tx } {
  return { tx: tx as Tx };
}

async function query(
  { driver }: { readonly driver: Pick<Driver, "session"> },
  text: string,
): Promise<readonly SqlRow[]> {
  const session = await driver.session();
  try {
    return (await session.query(text)).rows.map((row) => ({ ...row }));
  } finally {
    await session.release();
  }
}

/** The first integer that a number cannot tell from its neighbour. */
export const BEYOND_NUMBERS: bigint = 2n ** 53n + 1n;

const ORDERS_2_TO_6 = [2, 3, 4, 5, 6].map((order) => ({ order }));
const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, index) => index);
const NO_BYTES = new Uint8Array();
const EVERYTHING = {
  priority: -3,
  headers: { trace: "é '\"\\ 😀 ?" },
  key: "a key, $1 and ?",
  at: new Date(Date.UTC(2000, 0, 31, 12, 30, 15)),
};
const PARCELS = inbox("parcels", {
  id: "id",
  group: "queue",
  priority: "priority",
  retryAfter: "due",
  attempt: "attempt",
  headers: "headers",
  partitionKey: "partition_key",
  lockedUntil: "locked_until",
  payload: bytes("payload"),
});
