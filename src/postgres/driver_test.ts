import assert from "node:assert/strict";
import client from "postgres";
import { ClosedError } from "../errors.ts";
import { postgres, type PostgresSql } from "./mod.ts";
import {
  countConnections,
  firstRow,
  isDriverError,
  query,
  serverTest,
  until,
  withDriver,
} from "./server_for_test.ts";

const NOWHERE = "postgres://ada:s3cret@127.0.0.1:1/jobs?application_name=x";

Deno.test("what is no address, or an unknown option, is a TypeError", () => {
  for (const address of ["", "db", "mysql://h/d", "postgres://", undefined, null, 5]) {
    assert.throws(() => postgres(address as unknown as string), TypeError, String(address));
  }
  const wrong = [{ max: 5 }, { connections: 0 }, { statementTimeout: 2 ** 31 }, { prepare: 1 }];
  for (const options of wrong) {
    assert.throws(() => postgres(NOWHERE, options as object), TypeError, JSON.stringify(options));
  }
  const sql = {} as PostgresSql;
  assert.throws(() => postgres({ sql }, { connections: 5 }), /^TypeError: Cannot set connections/);
});

Deno.test("a server that cannot be reached is an error without the password", async () => {
  const driver = postgres(NOWHERE);
  assert.equal(driver.name, "Postgres");
  assert.deepEqual(driver.forms, ["row lock", "lease", "advisory lock"]);
  for (let round = 0; round < 2; round++) {
    await assert.rejects(driver.open(), (error: Error) => {
      isDriverError("disconnected", /database "127\.0\.0\.1:1\/jobs": .*ECONNREFUSED/)(error);
      return !Deno.inspect(error).includes("s3cret");
    });
  }
  await driver.close();
});

Deno.test("an address that cannot be read is an error without the password", async () => {
  const driver = postgres("postgres://ada:s3cret%@[/jobs");
  await assert.rejects(driver.open(), (error: Error) => {
    isDriverError("unusable", /its address cannot be read/)(error);
    return !Deno.inspect(error).includes("s3cret");
  });
});

Deno.test("a server that is too old, and a client that renames columns, are refused", async () => {
  const refused = { 120017: /the server is Postgres 12; Holdfast needs 13/, "": /transform/ };
  for (const [version, message] of Object.entries(refused)) {
    const driver = postgres({ sql: stub(version) });
    await assert.rejects(driver.open(), isDriverError("unusable", message));
  }
});

/** A client whose server is of this version, or that changes the name of the version's column. */
function stub(version: string): PostgresSql {
  const name = version === "" ? "serverVersionNum" : "server_version_num";
  const rows = Object.assign([[new TextEncoder().encode(version)]], {
    columns: [{ name, type: 25 }],
  });
  return {
    unsafe: () => Object.assign(Promise.resolve(rows), { raw: () => Promise.resolve(rows) }),
    typed: (value) => value,
    begin: () => Promise.reject(new Error("Not here")),
  };
}

serverTest("a database that does not exist is unusable", async (server) => {
  const address = new URL(server);
  address.pathname = "/holdfast_nowhere";
  await assert.rejects(
    postgres(address).open(),
    isDriverError("unusable", /^Cannot open the Postgres database ".*holdfast_nowhere": .*3D000/),
  );
});

serverTest("open, close and open again; closed it is refused", async (server) => {
  const driver = postgres(server);
  await assert.rejects(driver.session(), ClosedError);
  await driver.open();
  await assert.rejects(driver.open(), ClosedError);
  await driver.close();
  await driver.close();
  await assert.rejects(driver.session(), ClosedError);
  await driver.open();
  assert.deepEqual(await firstRow(driver, "SELECT 1 AS one"), { one: 1 });
  await driver.close();
});

serverTest(
  "closing leaves no connection, nor anybody waiting",
  (server) =>
    withDriver(server, {}, async (witness) => {
      const applicationName = `holdfast ${crypto.randomUUID()}`;
      const driver = postgres(server, { applicationName, connections: 3 });
      await driver.open();
      const sessions = await Promise.all([1, 2, 3, 4].map(() => driver.session()));
      await Promise.all(sessions.slice(1).map((session) => session.begin()));
      assert.equal(await countConnections(witness, applicationName), 3);
      const waiting = assert.rejects(sessions[0]!.query("SELECT 1"), ClosedError);
      const closing = driver.close();
      await waiting;
      await sessions[1]!.commit();
      await Promise.all(sessions.map((session) => session.release()));
      await closing;
      await until(async () => await countConnections(witness, applicationName) === 0);
    }),
);

serverTest(
  "settings come with the connection",
  (server) =>
    withDriver(server, { statementTimeout: 1234 }, async (driver) => {
      const settings = {
        TimeZone: "UTC",
        statement_timeout: "1234ms",
        idle_in_transaction_session_timeout: "45s",
        tcp_keepalives_idle: "10",
      };
      for (const [setting, value] of Object.entries(settings)) {
        const row = await firstRow(driver, "SELECT current_setting($1) AS value", [setting]);
        assert.deepEqual(row, { value }, setting);
      }
      await assert.rejects(
        query(driver, "SELECT pg_sleep(10)"),
        isDriverError("other", /57014.*statementTimeout/),
      );
    }),
);

serverTest("behind PgBouncer settings are made in each transaction, and nothing is prepared", (
  server,
) =>
  withDriver(
    server,
    { pgBouncer: true, connections: 1, statementTimeout: 1234 },
    async (driver) => {
      const show = "SELECT current_setting('statement_timeout') AS value WHERE $1 = 1";
      const { value: before } = await firstRow(driver, show, [1]);
      const session = await driver.session();
      await session.begin();
      assert.deepEqual(await firstRow(session, show, [1]), { value: "1234ms" });
      await session.commit();
      assert.deepEqual(await firstRow(session, show, [1]), { value: before });
      const prepared = "SELECT count(*)::int FROM pg_prepared_statements WHERE statement ~ 'WHERE'";
      assert.deepEqual(await firstRow(session, prepared), { count: 0 });
      await session.release();
    },
  ));

serverTest(
  "statements are prepared once per connection",
  (server) =>
    withDriver(server, { connections: 1 }, async (driver) => {
      for (const value of [1, 2n, "3", null]) {
        await query(driver, "SELECT $1::text::int8 AS once", [value]);
      }
      const prepared =
        "SELECT count(*)::int FROM pg_prepared_statements WHERE statement ~ 'AS onc[e]'";
      assert.deepEqual(await firstRow(driver, prepared), { count: 1 });
    }),
);

serverTest("a client of the caller's is used as it is, and never ended", async (server) => {
  const notices: unknown[] = [];
  const sql = client(server, { max: 2, onnotice: (notice) => notices.push(notice) });
  const driver = postgres({ sql });
  await driver.open();
  const text = "SELECT timestamptz '2026-01-31 10:00:00.123456Z' = $1::timestamptz AS same, " +
    `'{"a":1}'::json AS json`;
  const session = await driver.session();
  assert.deepEqual(await session.query(text, ["2026-01-31 10:00:00.123456+00"]), {
    rows: [{ same: 1, json: '{"a":1}' }],
    changes: 0,
  });
  await session.begin();
  const setting = "SELECT current_setting('idle_in_transaction_session_timeout') AS value";
  assert.deepEqual(await firstRow(session, setting), { value: "45s" });
  await session.commit();
  await session.release();
  await driver.close();
  const rows = await sql`SELECT 1 AS one`;
  assert.deepEqual([...rows], [{ one: 1 }]);
  assert.deepEqual(notices, []);
  await sql.end();
});
