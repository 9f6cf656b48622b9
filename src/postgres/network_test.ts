import assert from "node:assert/strict";
import { postgresDriver } from "./driver.ts";
import { openOwnClient } from "./own_client.ts";
import {
  aborted,
  firstRow,
  isDriverError,
  Network,
  pidOf,
  query,
  serverTest,
} from "./server_for_test.ts";

/** A driver that waits for the server for less than a second. */
function impatientDriver(address: string, idleTimeout = "10000") {
  const startup = { idle_in_transaction_session_timeout: idleTimeout };
  return postgresDriver({
    label: "under test",
    connections: 2,
    prepare: true,
    patience: 400,
    heartbeat: 100,
    secondsToEnd: 0.5,
    localSettings: {},
    connect: () => openOwnClient({ address, connections: 2, prepare: true, startup }),
  });
}

serverTest("when the network falls silent all calls are rejected, and new ones succeed", async (
  server,
) => {
  await using network = new Network(server);
  const driver = impatientDriver(network.address);
  await driver.open();
  const [held, idle] = [await driver.session(), await driver.session()];
  await Promise.all([held.begin(), idle.begin()]);
  network.fallSilent();
  const silent = isDriverError("disconnected", /no answer within 400 ms/);
  await assert.rejects(held.query("SELECT 1"), silent);
  assert(held.lost.aborted);
  await assert.rejects(held.commit(), isDriverError("disconnected", /nothing more was sent/));
  await aborted(idle.lost);
  assert(silent(idle.lost.reason));
  assert.deepEqual(await firstRow(driver, "SELECT 1 AS one"), { one: 1 });
  network.fallSilent();
  await assert.rejects(query(driver, "SELECT 1"), silent);
  assert.deepEqual(await firstRow(driver, "SELECT 1 AS one"), { one: 1 });
  await Promise.all([held.release(), idle.release()]);
  const closing = driver.close();
  await network[Symbol.asyncDispose]();
  await closing;
});

serverTest("a COMMIT without an answer has an unknown outcome", async (server) => {
  await using network = new Network(server);
  const driver = impatientDriver(network.address);
  await driver.open();
  const session = await driver.session();
  await session.begin();
  network.fallSilent();
  await assert.rejects(
    session.commit(),
    isDriverError("disconnected", /Cannot tell whether .* outcome is unknown/),
  );
  assert(session.lost.aborted);
  await session.release();
  const closing = driver.close();
  await network[Symbol.asyncDispose]();
  await closing;
});

serverTest("a transaction that is idle is kept alive, even when it has failed", async (server) => {
  const driver = impatientDriver(server, "300");
  await driver.open();
  const session = await driver.session();
  await session.begin();
  const pid = await pidOf(session);
  await session.query("SAVEPOINT a");
  await assert.rejects(session.query("SELECT 1 / 0"));
  await new Promise((resolve) => setTimeout(resolve, 1000));
  assert(!session.lost.aborted, String(session.lost.reason));
  await session.query("ROLLBACK TO a");
  assert.equal(await pidOf(session), pid);
  await session.commit();
  await driver.close();
});
