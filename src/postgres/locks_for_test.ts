import assert from "node:assert/strict";
import client from "postgres";
import type { Driver } from "../driver/driver.ts";
import { postgres } from "./mod.ts";
import { firstRow, serverTest, until, withDriver } from "./server_for_test.ts";

/** What a test of locks works with. */
export interface LockTest {
  /** The driver under test. */
  readonly driver: Driver;
  /** Another one, which sees and does what an administrator would. */
  readonly witness: Driver;
  /** How many advisory locks the connections of the driver hold. */
  countLocks(): Promise<number>;
}

/**
 * A test of locks on a client of our own and on one of the caller's, after which no lock of it may
 * be left while its connections live.
 */
export function lockTest(name: string, test: (context: LockTest) => Promise<void>): void {
  for (const whose of ["our own", "the caller's"] as const) {
    serverTest(
      `${name}, on ${whose} client`,
      (server) =>
        withDriver(server, {}, async (witness) => {
          const applicationName = `holdfast ${crypto.randomUUID()}`;
          const theirs = client(server, {
            max: 4,
            connection: { application_name: applicationName },
            onnotice: () => {},
          });
          const driver = whose === "our own"
            ? postgres(server, { applicationName, connections: 4 })
            : postgres({ sql: theirs });
          await driver.open();
          const countLocks = () => countAdvisoryLocks(witness, applicationName);
          try {
            await test({ driver, witness, countLocks });
            await until(async () => await countLocks() === 0);
          } finally {
            await driver.close();
            // It waits for ever for a statement that was cut off.
            await theirs.end({ timeout: 0.1 });
          }
        }),
    );
  }
}

/** How many advisory locks the connections of this name hold. */
async function countAdvisoryLocks(witness: Driver, applicationName: string): Promise<number> {
  const { count } = await firstRow(
    witness,
    "SELECT count(*)::int FROM pg_locks JOIN pg_stat_activity USING (pid) " +
      "WHERE locktype = 'advisory' AND application_name = $1",
    [applicationName],
  );
  return Number(count);
}

/** A key that no other test locks. */
export function lockKey(): string {
  return `key ${crypto.randomUUID()}`;
}

/** Whether a session of this driver can take the lock of a key. */
export async function isFree(driver: Driver, key: string): Promise<boolean> {
  const session = await driver.session();
  await session.begin();
  const holder = await session.tryLock(key);
  await session.release();
  return holder !== undefined;
}

/** Whether the connection with this process is still there. */
export async function isAlive(witness: Driver, process: bigint): Promise<boolean> {
  const { count } = await firstRow(
    witness,
    "SELECT count(*)::int FROM pg_stat_activity WHERE pid = $1::int",
    [process],
  );
  return count === 1;
}

/** Checks that a lock was given, and returns who holds it. */
export function given(holder: bigint | undefined): bigint {
  assert.equal(typeof holder, "bigint");
  return holder!;
}
