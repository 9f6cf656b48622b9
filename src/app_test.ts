import { configure, type LogRecord, reset } from "@logtape/logtape";
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { FakeTime, TestApp } from "../testing/mod.ts";
import { App } from "./app.ts";
import { Broker } from "./broker.ts";
import { ClosedError, DeclarationError, DriverError, ShutdownError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import { ack } from "./outcome.ts";
import { sqlite } from "./sqlite/mod.ts";
import { state } from "./state.ts";
import type { Handler } from "./subscription.ts";
import { text } from "./text.ts";

const jobs = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: text("payload"),
});
const queue = jobs.queue();

function brokerOf(handler: Handler<string>, database = ":memory:", workers = 1) {
  return new Broker(sqlite(database)).createTables(jobs).include(
    queue.subscribe({ workers }, handler),
  );
}

function publisher(database = ":memory:") {
  return new Broker(sqlite(database)).createTables(jobs);
}

async function withFile(test: (file: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(`${folder}/jobs.db`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** The rows of the table after the app has let go of the file: attempt and expiry. */
function rowsOf(file: string): { attempt: number; locked_until: number | null }[] {
  using database = new DatabaseSync(file);
  return database.prepare("SELECT attempt, locked_until FROM jobs ORDER BY id").all()
    .map((row) => ({ ...row })) as { attempt: number; locked_until: number | null }[];
}

/** A handler's work that only its signal ends. Works on virtual and on real time. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(new Error("nobody aborted it")), 86_400_000);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

async function isClosed(broker: Broker<"SQLite", "lease" | "advisory lock">): Promise<boolean> {
  try {
    await (await broker.driver.session()).release();
    return false;
  } catch (error) {
    assert(error instanceof ClosedError);
    return true;
  }
}

Deno.test("an app without a name, or with an unknown option, is refused", () => {
  assert.throws(() => new App({ name: "" }), (error: Error) => {
    assert(error instanceof DeclarationError);
    assert.match(error.message, /without a name.*new App\(\{ name/);
    return true;
  });
  // @ts-expect-error a name is required
  assert.throws(() => new App({}), DeclarationError);
  // @ts-expect-error options are required
  assert.throws(() => new App(), DeclarationError);
  assert.throws(
    // @ts-expect-error an unknown option
    () => new App({ name: "app", graceful: 5 }),
    (error: Error) => {
      assert(error instanceof DeclarationError);
      assert.match(
        error.message,
        /graceful is not an option.*name, version, preStop, drain, abortTimeout/,
      );
      return true;
    },
  );
  assert.throws(() => new App({ name: "app", drain: -1 }), RangeError);
  assert.throws(() => new App({ name: "app", abortTimeout: NaN }), RangeError);
});

Deno.test("hooks run in order, each with the database in the state it is promised", async () => {
  const order: string[] = [];
  const broker = publisher();
  const app = new App({ name: "hooks" })
    .onStartup(async () => void order.push(`startup 1 closed=${await isClosed(broker)}`))
    .onStartup(() => void order.push("startup 2"))
    .withBroker(broker, (given) => {
      assert.equal(given, broker);
      order.push("configured");
    })
    .afterStartup(async (app) => {
      await app.publish(queue, "hello");
      order.push(`started closed=${await isClosed(broker)}`);
    })
    .onShutdown(async () => {
      await broker.publish(queue, "still connected");
      order.push(`shutdown closed=${await isClosed(broker)}`);
    })
    .afterShutdown(async () => void order.push(`stopped closed=${await isClosed(broker)}`));
  assert.deepEqual(order, ["configured"]);
  await app.start();
  assert.deepEqual(order.slice(1), ["startup 1 closed=true", "startup 2", "started closed=false"]);
  const { duration, queues } = await app.stop();
  assert.deepEqual(order.slice(4), ["shutdown closed=false", "stopped closed=true"]);
  assert(duration >= 0);
  assert.deepEqual(queues, []);
});

Deno.test("a hook is waited for before the next begins", async () => {
  const order: number[] = [];
  const app = new App({ name: "hooks" })
    .onStartup(async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      order.push(1);
    })
    .onStartup(() => void order.push(2));
  await using _running = await app.start();
  assert.deepEqual(order, [1, 2]);
});

Deno.test("a start that fails in the middle closes what it opened, and can be tried again", async () => {
  await withFile(async (file) => {
    const folder = `${file}-absent`;
    const first = publisher();
    const second = publisher(`${folder}/jobs.db`);
    const app = new App({ name: "half" }).withBroker(first).withBroker(second);
    await assert.rejects(app.start(), (error: Error) => {
      assert(error instanceof DriverError);
      assert.equal(error.kind, "unusable");
      return true;
    });
    assert(await isClosed(first));
    assert(await isClosed(second));
    await assert.rejects(first.publish(queue, "a"), ClosedError);
    await assert.rejects(app.stop(), ClosedError);

    await Deno.mkdir(folder);
    await using _running = await app.start();
    assert.equal((await second.publish(queue, "a")).id, 1n);
  });
});

Deno.test("a start that fails in an onStartup hook opens nothing, and can be tried again", async () => {
  let fail = true;
  const broker = publisher();
  const app = new App({ name: "hook" }).withBroker(broker).onStartup(() => {
    if (fail) throw new Error("no mail server");
  });
  await assert.rejects(app.start(), /^Error: no mail server$/);
  assert(await isClosed(broker));
  fail = false;
  await using _running = await app.start();
  assert.equal((await app.publish(queue, "a")).inserted, true);
});

Deno.test("a start that fails in an afterStartup hook leaves no loop running", async () => {
  using time = new FakeTime();
  const broker = brokerOf(() => ack());
  const app = new App({ name: "late" }).withBroker(broker).afterStartup(() => {
    throw new Error("not today");
  });
  await assert.rejects(time.run(() => app.start()), /not today/);
  await time.quiet();
  assert(await isClosed(broker));
  await time.advance({ seconds: 5 });
  assert.deepEqual(time.pending.map(({ stack }) => stack), [], "a timer of the app is left");
});

Deno.test("a start that fails in an afterStartup hook ends the handlers it has started", async () => {
  using time = new FakeTime();
  let signal: AbortSignal | undefined;
  const broker = brokerOf(async (_, delivery) => {
    signal = delivery.signal;
    await untilAborted(delivery.signal);
  });
  const app = new App({ name: "late" }).withBroker(broker).afterStartup(async (app) => {
    await app.publish(queue, "a");
    while (signal === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
    throw new Error("not today");
  });
  let failed: unknown;
  const starting = time.run(() => app.start()).catch((error) => failed = error);
  for (let hours = 0; failed === undefined && hours < 12; hours++) {
    await time.advance({ minutes: 1 });
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await starting;
  assert.match(String(failed), /not today/);
  assert(signal?.aborted, "a handler of a start that failed is still at work");
});

Deno.test("an app that is stopped while it starts leaves nothing open", async () => {
  using time = new FakeTime();
  let stopping: Promise<unknown> = Promise.resolve();
  const broker = brokerOf(() => ack());
  const app = new App({ name: "hasty" }).withBroker(broker).onStartup((app) => {
    stopping = app.stop().catch(() => {});
  });
  await time.run(() => app.start()).catch(() => {});
  await stopping;
  await time.quiet();
  const closed = await isClosed(broker);
  await broker.driver.close();
  assert(closed, "the database is still open");
});

Deno.test("an app cannot be started while it runs, and can be started again after it stopped", async () => {
  const app = new App({ name: "twice" }).withBroker(publisher());
  const running = await app.start();
  await assert.rejects(app.start(), (error: Error) => {
    assert(error instanceof ClosedError);
    assert.equal(
      error.message,
      'Cannot start the app "twice" again: it is running; stop it first',
    );
    return true;
  });
  assert.equal((await app.publish(queue, "a")).id, 1n, "the first start is not disturbed");
  await running.stop();
  await running.finished;
  await assert.rejects(app.stop(), ClosedError);
  await using again = await app.start();
  assert.notEqual(again, running);
  assert.equal((await app.publish(queue, "a")).id, 1n, "a database in memory is a new one");
});

Deno.test("stop may be called twice at once, and does its work once", async () => {
  let shutdowns = 0;
  const app = new App({ name: "twice" }).withBroker(publisher())
    .onShutdown(() => void shutdowns++);
  const running = await app.start();
  const [first, second] = await Promise.all([app.stop(), running.stop()]);
  assert.equal(first, second);
  assert.equal(await running.stop(), first);
  await running[Symbol.asyncDispose]();
  assert.equal(shutdowns, 1);
});

Deno.test("what needs a running app says that it is not running", async () => {
  const key = state<string>("mailer");
  const app = new App({ name: "idle" }).withBroker(publisher());
  const says = (what: string) => (error: Error) => {
    assert(error instanceof ClosedError);
    assert.equal(
      error.message,
      `Cannot ${what}: the app "idle" is not running; start it first`,
    );
    return true;
  };
  await assert.rejects(app.publish(queue, "a"), says('publish to queue "jobs"'));
  await assert.rejects(app.stop(), says("stop"));
  assert.throws(() => app.set(key, "a"), says('set state "mailer"'));
  assert.throws(() => app.get(key), says('get state "mailer"'));
});

Deno.test("a shutdown hook that throws is logged, and the shutdown goes on", async () => {
  const records: LogRecord[] = [];
  await configure({
    sinks: { memory: (record) => void records.push(record) },
    loggers: [
      { category: "holdfast", sinks: ["memory"], lowestLevel: "debug" },
      { category: ["logtape", "meta"], sinks: ["memory"], lowestLevel: "error" },
    ],
    reset: true,
  });
  try {
    const order: string[] = [];
    const broker = publisher();
    const app = new App({ name: "clumsy" }).withBroker(broker)
      .onShutdown(() => {
        throw new Error("no goodbye");
      })
      .onShutdown(() => void order.push("second hook"))
      .afterShutdown(() => Promise.reject(new Error("no farewell")))
      .afterShutdown(() => void order.push("last hook"));
    const running = await app.start();
    await app.stop();
    await running.finished;
    assert.deepEqual(order, ["second hook", "last hook"]);
    assert(await isClosed(broker));
    const errors = records.filter(({ level }) => level === "error")
      .map(({ properties }) =>
        `${properties.app ?? properties.name}: ${properties.what}: ${properties.error}`
      );
    assert.deepEqual(errors, [
      "clumsy: A hook of onShutdown failed: Error: no goodbye",
      "clumsy: A hook of afterShutdown failed: Error: no farewell",
    ]);
  } finally {
    await reset();
  }
});

Deno.test("state that a hook sets reaches handlers, and lasts for one run", async () => {
  const greeting = state<string>("greeting");
  const heard: string[] = [];
  let run = 0;
  const app = new App({ name: "greeter" })
    .withBroker(brokerOf((name, delivery) => {
      heard.push(`${delivery.get(greeting)}, ${name}`);
    }))
    .onStartup((app) => {
      assert.throws(() => app.get(greeting), DeclarationError);
      app.set(greeting, ++run === 1 ? "Hello" : "Goodbye");
      assert.equal(app.get(greeting), run === 1 ? "Hello" : "Goodbye");
    });
  for (let times = 0; times < 2; times++) {
    await using test = await TestApp.start(app);
    await test.publish(queue, "Ada");
  }
  assert.deepEqual(heard, ["Hello, Ada", "Goodbye, Ada"]);
});

Deno.test("a state that a test replaces keeps its replacement", async () => {
  const greeting = state<string>("greeting");
  const heard: string[] = [];
  const app = new App({ name: "greeter" })
    .withBroker(brokerOf((_, delivery) => void heard.push(delivery.get(greeting))))
    .onStartup((app) => app.set(greeting, "real"));
  await using test = await TestApp.start(app, { state: [greeting.with("fake")] });
  await test.publish(queue, "Ada");
  assert.deepEqual(heard, ["fake"]);
});

Deno.test("a state that may be undefined counts as set", async () => {
  const optional = state<string | undefined>("optional");
  const app = new App({ name: "app" }).onStartup((app) => app.set(optional, undefined));
  await using _running = await app.start();
  assert.equal(app.get(optional), undefined);
});

Deno.test("a missing state is a DeclarationError that names it, and fails the delivery", async () => {
  const mailer = state<string>("mailer");
  const subscription = queue.subscribe((_, delivery) => void delivery.get(mailer));
  const broker = publisher().include(subscription);
  await using test = await TestApp.start(new App({ name: "app" }).withBroker(broker));
  await test.publish(queue, "Ada");
  const [delivery] = test.deliveries;
  assert(delivery?.error instanceof DeclarationError);
  assert.match(delivery.error.message, /state "mailer".*nothing has set it.*app\.set/);
  assert.deepEqual(delivery.outcome, { kind: "retry" });
});

Deno.test("state is still there when everything is closed, to be closed itself", async () => {
  const mailer = state<{ closed: boolean }>("mailer");
  const opened = { closed: false };
  const app = new App({ name: "app" }).withBroker(publisher())
    .onStartup((app) => app.set(mailer, opened))
    .afterShutdown((app) => void (app.get(mailer).closed = true));
  await app.start();
  await app.stop();
  assert(opened.closed, "afterShutdown could not get what onStartup had set");
});

Deno.test("stop waits for a handler at work, which then acks", async () => {
  await withFile(async (file) => {
    const subscription = queue.subscribe(async () => {
      await new Promise((resolve) => setTimeout(resolve, 40_000));
      return ack();
    });
    const broker = publisher(file).include(subscription);
    const test = await TestApp.start(new App({ name: "app" }).withBroker(broker));
    await test.publish(queue, "a");
    const { queues, duration } = await test.stop();
    assert.deepEqual(queues, [{ queue: "jobs", finished: 1, released: 0, aborted: 0 }]);
    assert.equal(duration, 40_000);
    test.subscriber(subscription).assertCalledOnce().assertSettled(ack());
    assert.deepEqual(rowsOf(file), []);
  });
});

Deno.test("leases are renewed while handlers drain", async () => {
  const subscription = queue.subscribe({ lease: { seconds: 4 } }, async () => {
    await new Promise((resolve) => setTimeout(resolve, 30_000));
  });
  const broker = publisher().include(subscription);
  const test = await TestApp.start(new App({ name: "app" }).withBroker(broker));
  await test.publish(queue, "a");
  await test.stop();
  test.subscriber(subscription).assertCalledOnce().assertSettled(ack());
  const renewals = test.trace.entries.filter(({ event }) => event.type === "renewed").length;
  assert(renewals >= 14, `${renewals} renewals`);
});

Deno.test("nothing is claimed once stop was called", async () => {
  await withFile(async (file) => {
    const subscription = queue.subscribe(async () => {
      await new Promise((resolve) => setTimeout(resolve, 10_000));
    });
    const broker = publisher(file).include(subscription);
    const test = await TestApp.start(new App({ name: "app" }).withBroker(broker));
    for (const each of ["a", "b", "c"]) await test.publish(queue, each);
    const { queues } = await test.stop();
    assert.deepEqual(queues, [{ queue: "jobs", finished: 1, released: 0, aborted: 0 }]);
    assert.deepEqual(rowsOf(file), [
      { attempt: 1, locked_until: null },
      { attempt: 1, locked_until: null },
    ]);
  });
});

Deno.test("a handler that outlasts the drain is aborted, and its row is free, its attempt spent", async () => {
  await withFile(async (file) => {
    let signal: AbortSignal | undefined;
    const broker = brokerOf(async (_, delivery) => {
      signal = delivery.signal;
      await untilAborted(delivery.signal);
    }, file);
    const app = new App({ name: "slow", drain: { seconds: 3 }, abortTimeout: { seconds: 2 } });
    const test = await TestApp.start(app.withBroker(broker));
    await test.publish(queue, "a");
    assert.equal(signal?.aborted, false);
    const { queues, duration } = await test.stop();
    assert.equal(queues[0]?.aborted, 1);
    assert.equal(duration, 3_000);
    assert(signal.reason instanceof ShutdownError);
    assert.match(signal.reason.message, /"slow" is stopping.*delivery\.signal.*3000 ms/);
    assert.equal(test.deliveries[0]?.settled, true);
    assert.deepEqual(rowsOf(file), [{ attempt: 2, locked_until: null }]);
  });
});

Deno.test("an aborted handler may still settle within the abort timeout", async () => {
  await withFile(async (file) => {
    const broker = brokerOf(async (_, delivery) => {
      await untilAborted(delivery.signal).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      return ack();
    }, file);
    const app = new App({ name: "slow", drain: { seconds: 3 }, abortTimeout: { seconds: 2 } });
    const test = await TestApp.start(app.withBroker(broker));
    await test.publish(queue, "a");
    assert.equal((await test.stop()).duration, 4_000);
    assert.deepEqual(rowsOf(file), []);
  });
});

Deno.test("with a drain of 0 handlers are aborted at once", async () => {
  await withFile(async (file) => {
    const broker = brokerOf((_, delivery) => untilAborted(delivery.signal), file);
    const test = await TestApp.start(new App({ name: "slow", drain: 0 }).withBroker(broker));
    await test.publish(queue, "a");
    const { queues } = await test.stop();
    assert.equal(queues[0]?.aborted, 1);
    assert.deepEqual(rowsOf(file), [{ attempt: 2, locked_until: null }]);
  });
});

Deno.test("stop resolves though a handler ignores its signal, and frees its row", async () => {
  await withFile(async (file) => {
    const started = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const broker = brokerOf(async (_, delivery) => {
      started.resolve();
      await gate.promise;
      assert(delivery.signal.aborted);
      ended.resolve();
      return ack();
    }, file);
    const app = new App({ name: "deaf", drain: 50, abortTimeout: 50 }).withBroker(broker);
    const running = await app.start();
    await app.publish(queue, "a");
    await started.promise;
    const { queues } = await app.stop();
    await running.finished;
    assert.deepEqual(queues, [{ queue: "jobs", finished: 0, released: 0, aborted: 1 }]);
    assert.deepEqual(rowsOf(file), [{ attempt: 2, locked_until: null }]);

    gate.resolve(); // what it does afterwards changes nothing
    await ended.promise;
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(rowsOf(file), [{ attempt: 2, locked_until: null }]);
    assert(await isClosed(broker));
  });
});

Deno.test("publishing to a queue that no broker serves, or two do, is refused", async () => {
  const others = inbox("others", {
    id: "id",
    lockedUntil: "locked_until",
    payload: text("payload"),
  });
  const first = publisher();
  const second = publisher();
  const app = new App({ name: "many" }).withBroker(first).withBroker(second);
  await using _running = await app.start();
  await assert.rejects(app.publish(others.queue(), "a"), (error: Error) => {
    assert(error instanceof DeclarationError);
    assert.match(error.message, /0 brokers of the app "many".*"others".*broker\.createTables/);
    return true;
  });
  await assert.rejects(app.publish(queue, "a"), (error: Error) => {
    assert(error instanceof DeclarationError);
    assert.match(error.message, /2 brokers of the app "many".*"jobs".*broker\.publish/);
    return true;
  });
  assert.equal((await first.publish(queue, "a")).id, 1n);
  assert.equal((await second.publish(queue, "a")).id, 1n, "each has a database of its own");
});

Deno.test("a publish is delivered by the broker that subscribes, not only creates", async () => {
  const subscription = queue.subscribe(() => ack());
  const broker = publisher().include(subscription);
  await using test = await TestApp.start(new App({ name: "app" }).withBroker(broker));
  const { id, inserted } = await test.publish(jobs.queue("another label"), "a");
  assert.equal(id, 1n);
  assert(inserted);
  test.subscriber(subscription).assertCalledOnce().assertReceived("a");
});

Deno.test("an app does not disturb a broker that somebody else has connected", async () => {
  await using broker = await publisher().connect();
  await broker.publish(queue, "a");
  await assert.rejects(new App({ name: "second" }).withBroker(broker).start(), ClosedError);
  try {
    assert.equal((await broker.publish(queue, "b")).id, 2n);
  } finally {
    await broker.driver.close();
  }
});

Deno.test("a second app with the same broker does not disturb the first", async () => {
  const broker = publisher();
  const app = new App({ name: "first" }).withBroker(broker);
  await using _running = await app.start();
  await assert.rejects(new App({ name: "second" }).withBroker(broker).start(), ClosedError);
  assert.equal((await broker.publish(queue, "a")).id, 1n);
});

Deno.test("closing a broker does not take the database from the app that runs it", async () => {
  const broker = publisher();
  const app = new App({ name: "app" }).withBroker(broker);
  await using _running = await app.start();
  await broker.close().catch((error) => assert(error instanceof ClosedError));
  assert.equal((await app.publish(queue, "a")).id, 1n);
});

Deno.test("a handler that throws is tried again after a delay, as the next attempt", async () => {
  const attempts: (number | undefined)[] = [];
  const subscription = queue.subscribe((_, delivery) => {
    attempts.push(delivery.attempt);
    if (attempts.length < 3) throw new Error("not yet");
  });
  const broker = publisher().include(subscription);
  await using test = await TestApp.start(new App({ name: "app" }).withBroker(broker));
  await test.publish(queue, "a");
  assert.deepEqual(attempts, [1]);
  await test.advance({ seconds: 15 });
  assert.deepEqual(attempts, [1, 2, 3]);
  test.subscriber(subscription).assertSettled(ack());
});

for (const attempt of ["attempt", undefined]) {
  const kind = attempt === undefined ? "without attempts" : "with attempts";

  Deno.test(`a renewal whose reply is lost does not lose the lease, ${kind}`, async () => {
    const driver = sqlite(":memory:");
    const open = driver.session.bind(driver);
    let lost = 0;
    const losing = <T>(text: string, sent: Promise<T>): Promise<T> =>
      sent.then((reply) => {
        if (
          !/^UPDATE \S+ SET "locked_until" = \? WHERE "id" = /.test(text) || lost++ > 0
        ) return reply;
        throw new DriverError("disconnected", "The renewal was committed, but the reply is lost");
      });
    driver.session = async () => {
      const session = await open();
      const query = session.query.bind(session);
      const queryEach = session.queryEach.bind(session);
      session.query = (text, params) => losing(text, query(text, params));
      session.queryEach = (text, params) => losing(text, queryEach(text, params));
      return session;
    };
    const table = inbox("jobs", {
      id: "id",
      lockedUntil: "locked_until",
      payload: text("payload"),
      ...(attempt === undefined ? {} : { attempt }),
    });
    const subscription = table.queue().subscribe({ lease: { seconds: 30 } }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 60_000));
      return ack();
    });
    const broker = new Broker(driver).createTables(table).include(subscription);
    await using test = await TestApp.start(new App({ name: "app" }).withBroker(broker));
    await test.publish(table.queue(), "a");
    await test.settled();
    assert(lost > 1, "a renewal's reply was lost, and others came");
    test.subscriber(subscription).assertCalledOnce().assertSettled(ack());
  });
}

Deno.test("a settle whose reply is lost is not taken for a lost lease", async () => {
  const driver = sqlite(":memory:");
  const open = driver.session.bind(driver);
  let lost = 0;
  driver.session = async () => {
    const session = await open();
    const query = session.query.bind(session);
    session.query = async (text, params) => {
      const reply = await query(text, params);
      if (!text.startsWith("DELETE") || lost++ > 0) return reply;
      throw new DriverError("disconnected", "The row was deleted, but the reply is lost");
    };
    return session;
  };
  const subscription = queue.subscribe({ lease: { seconds: 30 } }, () => ack());
  const broker = new Broker(driver).createTables(jobs).include(subscription);
  await using test = await TestApp.start(new App({ name: "app" }).withBroker(broker));
  await test.publish(queue, "a");
  await test.settled();
  assert.equal(lost, 2);
  test.subscriber(subscription).assertCalledOnce().assertSettled(ack());
  assert.equal(test.deliveries[0]?.error, undefined);
});
