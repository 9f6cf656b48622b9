import assert from "node:assert/strict";
import { ClosedError } from "../errors.ts";
import { mysql, type MysqlPool } from "./mod.ts";
import {
  firstRow,
  isDriverError,
  query,
  serverTest,
  until,
  withDriver,
  withTable,
} from "./server_for_test.ts";

const NOWHERE = "mysql://ada:s3cret@127.0.0.1:1/jobs";

Deno.test("what is no address, or an unknown option, is a TypeError", () => {
  const addresses = ["", "db", "postgres://h/d", "mysql://", undefined, null, 5];
  for (const address of addresses) {
    assert.throws(() => mysql(address as unknown as string), TypeError, String(address));
  }
  for (const options of [{ max: 5 }, { connections: 0 }, { statementTimeout: 2 ** 31 }]) {
    assert.throws(() => mysql(NOWHERE, options as object), TypeError, JSON.stringify(options));
  }
  const pool = {} as MysqlPool;
  assert.throws(() => mysql({ pool }, { connections: 5 }), /^TypeError: Cannot set connections/);
});

Deno.test("what is wrong with an address is told without the password", () => {
  const wrong = [`${NOWHERE}?ssl=true`, "mysql://ada:s3cret%@h/d", "mysql://ada:s3cret@[/jobs"];
  for (const address of wrong) {
    assert.throws(() => mysql(address), (error: Error) => {
      assert(error instanceof TypeError);
      return !Deno.inspect(error).includes("s3cret");
    });
  }
});

Deno.test("a server that cannot be reached is an error without the password", async () => {
  const driver = mysql(NOWHERE);
  assert.equal(driver.name, "MySQL");
  assert.deepEqual(driver.forms, ["row lock", "lease", "advisory lock"]);
  for (let round = 0; round < 2; round++) {
    await assert.rejects(driver.open(), (error: Error) => {
      isDriverError("disconnected", /database "127\.0\.0\.1:1\/jobs": .*ECONNREFUSED/)(error);
      return !Deno.inspect(error).includes("s3cret");
    });
  }
  await driver.close();
});

serverTest("a database or user that does not exist is unusable", async (server) => {
  const [database, user] = [new URL(server), new URL(server)];
  database.pathname = "/holdfast_nowhere";
  await assert.rejects(
    mysql(database).open(),
    isDriverError("unusable", /^Cannot open the MySQL database ".*holdfast_nowhere": .*\(1049\)/),
  );
  user.username = "nobody";
  user.password = "s3cret";
  await assert.rejects(mysql(user).open(), (error: Error) => {
    isDriverError("unusable", /Access denied/)(error);
    return !Deno.inspect(error).includes("s3cret");
  });
});

serverTest("open, close and open again; closed it is refused", async (server) => {
  const driver = mysql(server);
  await assert.rejects(driver.session(), ClosedError);
  await driver.open();
  await assert.rejects(driver.open(), ClosedError);
  await driver.close();
  await driver.close();
  await assert.rejects(driver.session(), ClosedError);
  await driver.open();
  const { version } = await firstRow(driver, "SELECT VERSION() AS version");
  assert.equal(driver.flavor, /MariaDB/.test(String(version)) ? "mariadb" : "mysql");
  await driver.close();
});

serverTest(
  "closing leaves no connection, nor anybody waiting",
  (server) =>
    withDriver(server, {}, async (witness) => {
      const name = `holdfast_${crypto.randomUUID().replaceAll("-", "")}`;
      await query(witness, `CREATE DATABASE ${name}`);
      const address = new URL(server);
      address.pathname = name;
      const driver = mysql(address, { connections: 3 });
      await driver.open();
      const sessions = await Promise.all([1, 2, 3, 4].map(() => driver.session()));
      await Promise.all(sessions.slice(1).map((session) => session.begin()));
      assert.equal(await countConnections(), 3);
      const waiting = assert.rejects(sessions[0]!.query("SELECT 1"), ClosedError);
      const closing = driver.close();
      await waiting;
      await sessions[1]!.commit();
      await Promise.all(sessions.map((session) => session.release()));
      await closing;
      await until(async () => await countConnections() === 0);
      await query(witness, `DROP DATABASE ${name}`);

      async function countConnections(): Promise<number> {
        const text = "SELECT COUNT(*) AS count FROM information_schema.processlist WHERE db = ?";
        return Number((await firstRow(witness, text, [name])).count);
      }
    }),
);

serverTest("every connection is set up, whatever the server's defaults", async (server) => {
  await withDriver(server, {}, async (admin) => {
    const { zone: before } = await firstRow(admin, "SELECT @@GLOBAL.time_zone AS zone");
    // MariaDB 10.11 knows none further east.
    for (const zone of ["-11:00", admin.flavor === "mariadb" ? "+13:00" : "+14:00"]) {
      await query(admin, `SET GLOBAL time_zone = '${zone}'`);
      try {
        await withDriver(server, { statementTimeout: 500 }, checkSettings);
      } finally {
        await query(admin, `SET GLOBAL time_zone = '${before}'`);
      }
    }
  });
});

async function checkSettings(driver: ReturnType<typeof mysql>): Promise<void> {
  const isMariadb = driver.flavor === "mariadb";
  const settings: Record<string, string | number> = {
    time_zone: "+00:00",
    autocommit: 1,
    completion_type: "NO_CHAIN",
    innodb_lock_wait_timeout: 10,
    wait_timeout: 45,
    [isMariadb ? "tx_isolation" : "transaction_isolation"]: "READ-COMMITTED",
    ...(isMariadb
      ? { idle_transaction_timeout: 45, max_statement_time: 0.5 }
      : { max_execution_time: 500 }),
  };
  for (const [setting, expected] of Object.entries(settings)) {
    const { value } = await firstRow(driver, `SELECT @@${setting} AS value`);
    assert.equal(String(value).replace(/(\.\d*?)0+$/, "$1"), String(expected), setting);
  }
  const { apart } = await firstRow(
    driver,
    "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW()) AS apart",
  );
  assert.equal(Number(apart), 0);
  await withTable(driver, "id INT PRIMARY KEY, at TIMESTAMP NULL", async (table) => {
    await query(driver, `INSERT INTO ${table} VALUES (1, ?)`, ["2026-01-31 10:00:00"]);
    const { at, seconds } = await firstRow(
      driver,
      `SELECT at, UNIX_TIMESTAMP(at) AS seconds FROM ${table} WHERE id = ?`,
      [1],
    );
    assert.equal(at, "2026-01-31 10:00:00");
    assert.equal(Number(seconds), Date.UTC(2026, 0, 31, 10) / 1000);
    const zero = query(driver, `INSERT INTO ${table} VALUES (2, '0000-00-00')`);
    await assert.rejects(zero, isDriverError("constraint", /1292/));
  });
  await assert.rejects(
    query(
      driver,
      "SELECT COUNT(*) FROM information_schema.columns a, " +
        "information_schema.columns b, information_schema.columns c WHERE a.ordinal_position > ?",
      [0],
    ),
    isDriverError("other", /option statementTimeout/),
  );
}

serverTest(
  "statements are prepared once per connection",
  (server) =>
    withDriver(server, { connections: 1 }, async (driver) => {
      const session = await driver.session();
      const before = await prepared();
      for (const value of [1, 2n, 3, 4, 5]) await session.query("SELECT ? AS once", [value]);
      // MySQL does it again once it has seen of what type the parameter is.
      assert(await prepared() - before <= 2);
      await session.release();

      async function prepared(): Promise<number> {
        const { rows: [row] } = await session.query("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'");
        return Number(row?.Value);
      }
    }),
);
