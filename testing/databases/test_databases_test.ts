import assert from "node:assert/strict";
import { ack, App, Broker, inbox, text } from "../../mod.ts";
import type { Driver } from "../../src/driver/driver.ts";
import { DeclarationError, DriverError } from "../../src/errors.ts";
import { sqlite } from "../../src/sqlite/mod.ts";
import { LeakError } from "../leak_error.ts";
import { TestApp } from "../test_app.ts";
import {
  onEachDatabase,
  onEachServer,
  run,
  runOpen,
  type TestedDatabase,
} from "./databases_for_test.ts";
import { TestDatabases } from "./test_databases.ts";

const USERS = "CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR(50) NOT NULL)";

onEachDatabase("each test has a database of its own, as prepare made it", async (on) => {
  await using databases = prepared(on);
  await using one = await databases.create();
  await using other = await databases.create();
  await run(one.connect(), "INSERT INTO users VALUES (2, 'Grace')");
  await run(other.connect(), "DELETE FROM users");
  assert.deepEqual(await namesIn(one.connect()), ["Ada", "Grace"]);
  assert.deepEqual(await namesIn(other.connect()), []);
  await using third = await databases.create();
  assert.deepEqual(await namesIn(third.connect()), ["Ada"]);
});

onEachDatabase(
  "the databases are gone after the test, and the template after all tests",
  async (on) => {
    const databases = prepared(on);
    const database = await databases.create();
    await run(database.connect(), "INSERT INTO users VALUES (2, 'Grace')");
    assert((await on.names()).includes(database.name));
    await database[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
    assert(!(await on.names()).includes(database.name));
    await databases.close();
    assert.deepEqual(await left(on), []);
  },
);

onEachDatabase("without prepare a database is empty", async ({ url, connect }) => {
  const databases = new TestDatabases({ url, connect });
  await using database = await databases.create();
  await run(database.connect(), USERS);
  assert.deepEqual(await namesIn(database.connect()), []);
});

onEachDatabase("a database is dropped after a test that fails", async (on) => {
  await using databases = prepared(on);
  let name = "";
  await assert.rejects(async () => {
    await using database = await databases.create();
    name = database.name;
    throw new Error("The test fails");
  }, /^Error: The test fails$/);
  assert(!(await on.names()).includes(name));
});

onEachDatabase("prepare runs once, however many ask at once", async (on) => {
  let runs = 0;
  await using databases = prepared(on, () => void runs++);
  const all = await Promise.all(Array.from({ length: 8 }, () => databases.create()));
  await Promise.all(all.map((database) => database[Symbol.asyncDispose]()));
  await using _ = await databases.create();
  assert.equal(runs, 1);
});

onEachDatabase(
  "a connection that is left open is reported, and the database is dropped",
  async (on) => {
    await using databases = prepared(on);
    const database = await databases.create();
    const driver = database.connect();
    await driver.open();
    await runOpen(driver, "SELECT name FROM users");
    await assert.rejects(database[Symbol.asyncDispose](), (error: unknown) => {
      assert(error instanceof LeakError);
      assert.match(error.message, LEAKS[on.title]!);
      return true;
    });
    assert(!(await on.names()).includes(database.name));
    await driver.close();
  },
);

onEachDatabase(
  "a transaction that is left open is reported, and the database is dropped",
  async (on) => {
    await using databases = prepared(on);
    const database = await databases.create();
    const driver = database.connect();
    await driver.open();
    const session = await driver.session();
    await session.begin();
    await session.query("DELETE FROM users");
    await assert.rejects(database[Symbol.asyncDispose](), LeakError);
    assert(!(await on.names()).includes(database.name));
    await session.release().catch(() => {});
    await driver.close();
  },
);

onEachDatabase("a prepare that throws is told, is tried again, and leaves nothing", async (on) => {
  let runs = 0;
  await using databases = prepared(on, () => {
    if (++runs === 1) throw new Error("No such migration");
  });
  await assert.rejects(databases.create(), (error: unknown) => {
    assert(error instanceof DeclarationError);
    assert.match(error.message, /^Cannot prepare the test database .*: No such migration; mend/);
    assert.equal((error.cause as Error).message, "No such migration");
    return true;
  });
  assert.deepEqual(await left(on), []);
  await using database = await databases.create();
  assert.deepEqual(await namesIn(database.connect()), ["Ada"]);
});

onEachDatabase(
  "a prepare that leaves a connection open is told, and leaves nothing",
  async (on) => {
    const leaked: Driver[] = [];
    const { url, connect } = on;
    const databases = new TestDatabases({
      url,
      connect: (url) => {
        leaked.push(connect(url));
        return connect(url);
      },
      prepare: async () => {
        await leaked.at(-1)!.open();
        await runOpen(leaked.at(-1)!, USERS);
      },
    });
    try {
      await assert.rejects(databases.create(), (error: unknown) => {
        assert(error instanceof LeakError, String(error));
        assert.match(error.message, /prepare has returned, but left .*open/);
        return true;
      });
      assert.deepEqual(await left(on), []);
    } finally {
      await Promise.all(leaked.map((driver) => driver.close()));
    }
  },
);

onEachDatabase("an app runs on it, and its stop leaves no connection", async (on) => {
  const jobs = inbox("jobs", {
    id: "id",
    attempt: "attempt",
    lockedUntil: "locked_until",
    payload: text("payload"),
  });
  const databases = new TestDatabases({ url: on.url, connect: on.connect });
  await using database = await databases.create();
  const greet = jobs.queue().subscribe(() => ack());
  const broker = new Broker(database.connect()).createTables(jobs).include(greet);
  await using app = await TestApp.start(new App({ name: "greeter" }).withBroker(broker));
  await app.publish(jobs.queue(), "Ada");
  app.subscriber(greet).assertCalledOnce().assertReceived("Ada").assertSettled(ack());
});

onEachServer("a user who may not create databases is told the grant", async (on) => {
  const { url, connect, title } = on;
  const user = `h${crypto.randomUUID().slice(0, 8)}`;
  const account = title === "Postgres" ? user : `'${user}'@'%'`;
  const theirs = new URL(url);
  theirs.username = user;
  theirs.password = "a secret";
  const password = title === "Postgres" ? "LOGIN PASSWORD 'a secret'" : "IDENTIFIED BY 'a secret'";
  await run(
    connect(url),
    `CREATE ${title === "Postgres" ? "ROLE" : "USER"} ${account} ${password}`,
  );
  try {
    // A database that everybody may enter.
    theirs.pathname = title === "Postgres" ? "/postgres" : "/information_schema";
    await using databases = new TestDatabases({ url: theirs.href, connect });
    let grant = "";
    await assert.rejects(databases.create(), (error: unknown) => {
      assert(error instanceof DriverError);
      assert.doesNotMatch(error.message, /secret/);
      [, grant = ""] = /let an administrator run: (.*)/.exec(error.message) ?? [];
      return true;
    });
    await run(connect(url), grant);
    await using database = await databases.create();
    await run(database.connect(), USERS);
  } finally {
    await run(connect(url), `DROP ${title === "Postgres" ? "ROLE" : "USER"} ${account}`);
  }
});

Deno.test("TestDatabases: what cannot work is refused when it is declared", () => {
  const connect = (url: string): Driver => ({ ...sqlite(url), name: "Postgres" }) as Driver;
  const refuse = (options: object, message: RegExp): void => {
    assert.throws(
      () => new TestDatabases({ url: "", connect, ...options } as never),
      (error: unknown) => {
        assert(error instanceof DeclarationError);
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      },
    );
  };
  refuse({ url: undefined }, /the url is undefined; is the environment variable set\?/);
  refuse({ url: "" }, /the url is ""/);
  refuse({ url: "jobs.db" }, /the url does not name a server/);
  for (const end of ["", "/", "?a=b", "/?a=b"]) {
    const url = `postgres://me:secret@host:5432${end}`;
    refuse({ url }, /on "host:5432": the url names no database; end it with/);
  }
  refuse({ url: "x", connect: () => ({ name: "Oracle" }) }, /databases of Oracle: let connect/);
  refuse({ url: "x", migrate: () => {} }, /migrate is not an option/);
});

const LEAKS: Readonly<Record<string, RegExp>> = {
  SQLite: /was dropped while it was still in use.*\n- a connection to .*database\.sqlite/s,
  Postgres: /\n- process \d+ of "holdfast", idle for \d s, which last ran: SELECT name FROM users/,
  MySQL: /\n- connection \d+ of "root", Sleep for \d s, which last ran: SELECT name FROM users/,
  // Its performance schema is off, unless the server is told.
  MariaDB: /\n- connection \d+ of "root", Sleep for \d s/,
};

function prepared({ url, connect }: TestedDatabase, note: () => void = () => {}) {
  return new TestDatabases({
    url,
    connect,
    prepare: async (driver) => {
      note();
      await runOpen(driver, USERS, "INSERT INTO users VALUES (1, 'Ada')");
    },
  });
}

async function namesIn(driver: Driver): Promise<string[]> {
  return (await run(driver, "SELECT name FROM users ORDER BY id")).map(({ name }) => String(name));
}

/** The databases that this process has made and that are still there. */
async function left(on: TestedDatabase): Promise<string[]> {
  return (await on.names()).filter((name) => name.startsWith("holdfast_test_"))
    .filter((name) => name.includes(`_${Deno.pid}_`));
}
