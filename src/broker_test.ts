import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { Broker } from "./broker.ts";
import {
  ClosedError,
  DeclarationError,
  DriverError,
  PayloadError,
  PublishError,
  SchemaError,
} from "./errors.ts";
import { inbox } from "./inbox.ts";
import { json } from "./json.ts";
import { sqlite } from "./sqlite/mod.ts";
import { text } from "./text.ts";

const jobs = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: text("payload"),
});
const plain = inbox("plain", { id: "id", payload: text("payload") });
const queue = jobs.queue();
const memory = () => new Broker(sqlite(":memory:")).createTables(jobs);

function notConnected(error: unknown): true {
  assert(error instanceof ClosedError);
  assert.equal(
    error.message,
    'Cannot publish to queue "jobs": its broker is not connected; ' +
      'start its app, or use "await using broker = await new Broker(driver).connect()"',
  );
  return true;
}

Deno.test("a broker has defaults, and takes others in milliseconds", () => {
  const driver = sqlite(":memory:");
  const plain = new Broker(driver);
  assert.equal(plain.driver, driver);
  assert.deepEqual([plain.lease, plain.pollInterval], [30_000, 1_000]);
  const given = new Broker(driver, { lease: 1_500, pollInterval: { minutes: 1 } });
  assert.deepEqual([given.lease, given.pollInterval], [2_000, 60_000]);
});

Deno.test("an unknown option is refused, and so are lengths that cannot be", () => {
  const make = (options: unknown) => () => new Broker(sqlite(":memory:"), options as never);
  assert.throws(make({ poll: 5 }), (error: unknown) => {
    assert(error instanceof DeclarationError);
    assert.match(
      error.message,
      /poll is not an option; options are lease, pollInterval, listenNotify, wake$/,
    );
    return true;
  });
  for (const options of [{ lease: 0 }, { lease: NaN }, { pollInterval: 0 }, { pollInterval: -1 }]) {
    assert.throws(make(options), (error: unknown) => {
      assert(error instanceof RangeError);
      assert.match(error.message, /of the broker/);
      return true;
    });
  }
});

Deno.test("publishing before connect is refused, with what to do", async () => {
  await assert.rejects(memory().publish(queue, "a"), notConnected);
});

Deno.test("a broker that only publishes is connected, publishes and is closed", async () => {
  const broker = memory();
  assert.equal(await broker.connect(), broker);
  assert.deepEqual(await broker.publish(queue, "a"), { id: 1n, inserted: true });
  assert.deepEqual(await broker.publish(jobs.queue("label"), "b"), { id: 2n, inserted: true });
  await broker.close();
  await broker.close(); // closing twice is nothing
  await assert.rejects(broker.publish(queue, "a"), notConnected);
});

Deno.test("await using closes a broker", async () => {
  const broker = memory();
  {
    await using connected = await broker.connect();
    assert.equal((await connected.publish(queue, "a")).id, 1n);
  }
  await assert.rejects(broker.publish(queue, "a"), notConnected);
  await assert.rejects(broker.driver.session(), ClosedError);
});

Deno.test("a broker is not connected twice, and may be again after close", async () => {
  const broker = memory();
  await broker.connect();
  await assert.rejects(broker.connect(), (error: unknown) => {
    assert(error instanceof ClosedError);
    assert.match(error.message, /again: .*close it/);
    return true;
  });
  assert.equal((await broker.publish(queue, "a")).id, 1n, "the first is not disturbed");
  await broker.close();
  await broker.connect();
  assert.equal((await broker.publish(queue, "a")).id, 1n);
  await broker.close();
});

Deno.test("a broker that is connected twice at once is connected once", async () => {
  const broker = memory();
  const results = await Promise.allSettled([broker.connect(), broker.connect()]);
  assert.deepEqual(results.map(({ status }) => status), ["fulfilled", "rejected"]);
  assert.equal((await broker.publish(queue, "a")).id, 1n);
  await broker.close();
  await assert.rejects(broker.driver.session(), ClosedError);
});

Deno.test("a connect that fails leaves nothing open, and can be tried again", async () => {
  using handle = new DatabaseSync(":memory:");
  const broker = new Broker(sqlite({ handle })).include(queue.subscribe(() => {}));
  await assert.rejects(broker.connect(), SchemaError);
  await assert.rejects(broker.driver.session(), ClosedError);
  await assert.rejects(broker.publish(queue, "a"), notConnected);
  for (const statement of broker.driver.dialect.ddl(jobs.description)) handle.exec(statement);
  await using connected = await broker.connect();
  assert.equal((await connected.publish(queue, "a")).id, 1n);
});

Deno.test("a row lock table is refused on SQLite, with the fix", () => {
  const refused = (error: unknown): true => {
    assert(error instanceof DeclarationError);
    assert.equal(
      error.message,
      'SQLite has no row locks: give "plain" the role lockedUntil (lease form) ' +
        "or the option advisoryLock",
    );
    return true;
  };
  const broker = new Broker(sqlite(":memory:"));
  assert.throws(() => broker.createTables(plain as never), refused);
  assert.throws(() => broker.createTables(jobs, plain as never), refused);
  assert.throws(() => broker.include(plain.queue().subscribe(() => {}) as never), refused);
  assert.deepEqual(broker.subscriptions, []);
});

Deno.test("two subscriptions of one table are refused, whatever their names", () => {
  const broker = memory().include(jobs.queue("first").subscribe(() => {}));
  const refused = (error: unknown): true => {
    assert(error instanceof DeclarationError);
    assert.equal(
      error.message,
      'Cannot include queue "second": queue "first" of this broker takes the rows of "jobs" ' +
        "already; use one subscription for a queue, with more workers, or tell the queues of the " +
        "table apart by the role group",
    );
    return true;
  };
  assert.throws(() => broker.include(jobs.queue("second").subscribe(() => {})), refused);
  const described = inbox("jobs", {
    id: "id",
    lockedUntil: "locked_until",
    payload: text("payload"),
  });
  assert.throws(() => broker.include(described.queue("second").subscribe(() => {})), refused);
  const subscription = inbox("others", {
    id: "id",
    lockedUntil: "locked_until",
    payload: text("payload"),
  }).queue().subscribe(() => {});
  assert.throws(() => broker.include(subscription, subscription), DeclarationError);
});

Deno.test("a table is created once, however often it is named, and left alone if it is there", async () => {
  using handle = new DatabaseSync(":memory:");
  const make = () => new Broker(sqlite({ handle })).createTables(jobs, jobs).createTables(jobs);
  assert.deepEqual(make().tables, [jobs]);
  for (const id of [1n, 2n]) {
    await using broker = await make().connect();
    assert.equal((await broker.publish(queue, "a")).id, id);
  }
  assert.equal(handle.prepare("SELECT count(*) AS n FROM jobs").get()!.n, 2);
});

Deno.test("a broker publishes to a table that it neither creates nor subscribes to", async () => {
  using handle = new DatabaseSync(":memory:");
  await using broker = await new Broker(sqlite({ handle })).connect();
  await assert.rejects(broker.publish(queue, "a"), (error: unknown) => {
    assert(error instanceof SchemaError);
    assert.match(error.message, /"jobs": the table does not exist/);
    return true;
  });
  for (const statement of broker.driver.dialect.ddl(jobs.description)) handle.exec(statement);
  assert.equal((await broker.publish(queue, "a")).id, 1n, "the table is looked at again");
});

Deno.test("ids that the service makes are published as made, and a second one of a kind fails", async () => {
  let id: bigint | string = "first";
  const keyed = inbox("keyed", {
    id: { column: "key", generate: () => id },
    lockedUntil: "locked_until",
    payload: text("payload"),
  });
  await using broker = await new Broker(sqlite(":memory:")).createTables(keyed).connect();
  assert.equal((await broker.publish(keyed.queue(), "a")).id, "first");
  await assert.rejects(broker.publish(keyed.queue(), "b"), (error: unknown) => {
    assert(error instanceof PublishError);
    assert.match(error.message, /^Cannot publish to queue "keyed" \(table "keyed"\): .*UNIQUE/);
    assert(error.cause instanceof DriverError);
    assert.equal(error.cause.kind, "constraint");
    return true;
  });
  id = "second";
  assert.equal((await broker.publish(keyed.queue(), "c")).id, "second");
});

Deno.test("an id that is an integer above 2^53 is published exactly", async () => {
  using handle = new DatabaseSync(":memory:");
  await using broker = await new Broker(sqlite({ handle })).createTables(jobs).connect();
  handle.exec("INSERT INTO jobs (id, payload) VALUES (9007199254740993, 'a')");
  assert.equal((await broker.publish(queue, "b")).id, 9007199254740994n);
});

Deno.test("a message that cannot be stored is refused before anything is written", async () => {
  const numbers = inbox("numbers", {
    id: "id",
    lockedUntil: "locked_until",
    payload: json<unknown>("payload"),
  });
  using handle = new DatabaseSync(":memory:");
  await using broker = await new Broker(sqlite({ handle })).createTables(numbers).connect();
  for (const message of [undefined, { big: 5n }]) {
    await assert.rejects(broker.publish(numbers.queue(), message), (error: unknown) => {
      assert(error instanceof PayloadError);
      assert.match(error.message, /queue "numbers", "numbers"\."payload".*nothing was written$/);
      return true;
    });
  }
  assert.equal(handle.prepare("SELECT count(*) AS n FROM numbers").get()!.n, 0);
});

Deno.test("a publish that is under way when the broker closes is carried out or refused", async () => {
  const broker = memory();
  await broker.connect();
  const publishing = Promise.allSettled([1, 2, 3].map((n) => broker.publish(queue, `${n}`)));
  await broker.close();
  for (const result of await publishing) {
    if (result.status === "rejected") assert(result.reason instanceof PublishError, result.reason);
  }
});
