import assert from "node:assert/strict";
import client from "mysql2";
import type { Driver, Session } from "../driver/driver.ts";
import { lockName } from "./lock_name.ts";
import { mysql } from "./mod.ts";
import { firstRow, query, serverTest, until, withDriver } from "./server_for_test.ts";

/** What a test of locks works with. */
export interface LockTest {
  /** The driver under test. */
  readonly driver: Driver;
  /** Another one, which sees and does what an administrator would. */
  readonly witness: Driver;
  /** A key that no other test locks, and that is free when this one ends. */
  lockKey(end?: string): string;
}

/**
 * A test of locks on connections of our own and on a pool of the caller's, after which no lock may
 * be left while the connections live.
 */
export function lockTest(name: string, test: (context: LockTest) => Promise<void>): void {
  for (const whose of ["our own", "the caller's"] as const) {
    serverTest(
      `${name}, on ${whose} pool`,
      (server) =>
        withDriver(server, {}, async (witness) => {
          const theirs = client.createPool({ uri: server, connectionLimit: 4 });
          const driver = whose === "our own"
            ? mysql(server, { connections: 4 })
            : mysql({ pool: theirs });
          const keys: string[] = [];
          await driver.open();
          try {
            await test({
              driver,
              witness,
              lockKey(end = "") {
                keys.push(`key ${crypto.randomUUID()}${end}`);
                return keys.at(-1)!;
              },
            });
            for (const key of keys) await until(() => isUnused(witness, key));
          } finally {
            await driver.close();
            await theirs.promise().end();
          }
        }),
    );
  }
}

/** Whether a session of this driver can take the lock of a key. */
export async function isFree(driver: Driver, key: string): Promise<boolean> {
  const session = await begin(driver);
  const holder = await session.tryLock(key);
  await session.release();
  return holder !== undefined;
}

/** Whether nobody holds the lock of a key, as the server says. */
export async function isUnused(witness: Driver, key: string): Promise<boolean> {
  const text = `SELECT IS_USED_LOCK(${lockName("?")}) AS holder`;
  return (await firstRow(witness, text, [key])).holder === null;
}

/** Whether this connection is still there. */
export async function isAlive(witness: Driver, connection: bigint): Promise<boolean> {
  const text = "SELECT id FROM information_schema.processlist WHERE id = ?";
  return (await query(witness, text, [connection])).rows.length === 1;
}

/** Checks that a lock was given, and returns who holds it. */
export function given(holder: bigint | undefined): bigint {
  assert.equal(typeof holder, "bigint");
  return holder!;
}

/** A session with a transaction open. */
export async function begin(driver: Driver): Promise<Session> {
  const session = await driver.session();
  await session.begin();
  return session;
}
