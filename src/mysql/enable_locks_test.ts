import assert from "node:assert/strict";
import client from "mysql2";
import { ClosedError } from "../errors.ts";
import { readUrl } from "./address.ts";
import type { ClientConnection, Command, Done } from "./client.ts";
import { mysqlDriver } from "./driver.ts";
import { mysql } from "./mod.ts";
import { connect } from "./own_client.ts";
import {
  connectionOf,
  isDriverError,
  query,
  serverTest,
  withDriver,
  withTable,
} from "./server_for_test.ts";

const isRefused = isDriverError("unusable", /^Cannot hold advisory locks .*connect .* directly$/);

serverTest("locks can be enabled at a server, and leave nothing open", async (server) => {
  const pool = client.createPool({ uri: server, connectionLimit: 1 });
  for (const driver of [mysql(server, { connections: 1 }), mysql({ pool })]) {
    await assert.rejects(driver.enableLocks(), ClosedError);
    for (let time = 0; time < 2; time++) {
      await driver.open();
      await driver.enableLocks();
      await driver.enableLocks();
      const session = await driver.session();
      await session.begin();
      await session.release();
      await driver.close();
    }
    await assert.rejects(driver.enableLocks(), ClosedError);
  }
  await pool.promise().end();
});

serverTest(
  "what is written after locks were enabled is committed",
  (server) =>
    withDriver(
      server,
      {},
      (witness) =>
        withDriver(server, { connections: 1 }, (driver) =>
          withTable(witness, "id BIGINT PRIMARY KEY", async (table) => {
            await driver.enableLocks();
            await query(driver, `INSERT INTO ${table} VALUES (1)`);
            assert.deepEqual((await query(witness, `SELECT id FROM ${table}`)).rows, [{ id: 1n }]);
          })),
    ),
);

serverTest("a client that does not tell its number is believed", async (server) => {
  await enable(server, (connection) => {
    Object.defineProperty(connection, "threadId", { value: null });
  });
});

serverTest("a proxy with connections of its own is refused", async (server) => {
  const refused = enable(server, (connection) => {
    Object.defineProperty(connection, "threadId", { value: connection.threadId! + 1 });
  });
  await assert.rejects(refused, isRefused);
});

serverTest("a proxy that gives each statement another connection is refused", async (server) => {
  for (const tells of [true, false]) {
    const other = await connect(readUrl(server));
    const refused = enable(server, (connection) => {
      if (!tells) Object.defineProperty(connection, "threadId", { value: null });
      const run = connection.query.bind(connection);
      let time = 0;
      connection.query = (command: Command, done: Done) =>
        command.sql.includes("CONNECTION_ID()") && time++ === 1
          ? other.query(command, done)
          : run(command, done);
    });
    await assert.rejects(refused, isRefused);
    other.destroy();
  }
});

serverTest("a connection that dies on the way is the reason", async (server) => {
  const failing = enable(server, (connection) => {
    const run = connection.query.bind(connection);
    connection.query = (command: Command, done: Done) => {
      if (command.sql.includes("CONNECTION_ID()")) connection.stream.destroy();
      else run(command, done);
    };
  });
  await assert.rejects(failing, isDriverError("disconnected"));
});

/** Enables locks with one connection that was meddled with, and uses it afterwards. */
async function enable(
  server: string,
  meddle: (connection: ClientConnection) => void,
): Promise<void> {
  const driver = mysqlDriver({
    label: "for a test",
    connections: 1,
    connect: async () => {
      const connection = await connect(readUrl(server));
      meddle(connection);
      return connection;
    },
    statementTimeout: 5000,
    patience: 5000,
    heartbeat: 1000,
  });
  await driver.open();
  try {
    await driver.enableLocks();
    const session = await driver.session();
    await session.begin();
    await connectionOf(session);
    await session.release();
  } finally {
    await driver.close();
  }
}
