import assert from "node:assert/strict";
import type { Driver, Session } from "../driver/driver.ts";
import { given, isAlive, isFree, lockKey, lockTest } from "./locks_for_test.ts";
import { isDriverError, pidOf, serverTest, withDriver } from "./server_for_test.ts";

lockTest("a lock keeps every other session out", async ({ driver, witness, countLocks }) => {
  const key = lockKey();
  const session = await begin(driver);
  const holder = given(await session.tryLock(key));
  assert.equal(holder, BigInt(Number(await pidOf(session))));
  for (const other of [driver, witness]) assert(!await isFree(other, key));
  assert(await isFree(witness, lockKey()));
  assert.equal(await countLocks(), 1);
  await session.commit();
  for (const other of [driver, witness]) assert(await isFree(other, key));
});

for (const end of ["commit", "rollback", "release"] as const) {
  lockTest(`a lock taken twice is given back by one ${end}`, async ({ driver, witness }) => {
    const key = lockKey();
    const session = await begin(driver);
    const holder = given(await session.tryLock(key));
    assert.equal(await session.tryLock(key), holder);
    const other = lockKey();
    assert.deepEqual(
      await Promise.all([session.tryLock(other), session.tryLock(other)]),
      [holder, holder],
    );
    await session[end]();
    assert(await isFree(witness, key) && await isFree(witness, other));
    assert(await isAlive(witness, holder), "the connection is kept");
    await session.begin();
    await session.release();
  });

  lockTest(`a lock is given back by ${end} when the transaction has failed`, async (
    { driver, witness, countLocks },
  ) => {
    const key = lockKey();
    const session = await begin(driver);
    const holder = given(await session.tryLock(key));
    await assert.rejects(session.query("SELECT 1 / 0"));
    await assert.rejects(session.tryLock(lockKey()), isDriverError("other", /25P02/));
    if (end === "commit") await assert.rejects(session.commit(), /a statement had failed/);
    else await session[end]();
    assert.equal(await countLocks(), 0);
    assert(await isFree(witness, key));
    assert(await isAlive(witness, holder), "the connection is kept");
  });
}

lockTest("a lock outlives a savepoint", async ({ driver, witness }) => {
  const key = lockKey();
  const session = await begin(driver);
  await session.query("SAVEPOINT a");
  given(await session.tryLock(key));
  await assert.rejects(session.query("SELECT 1 / 0"));
  await session.query("ROLLBACK TO SAVEPOINT a");
  assert(!await isFree(witness, key));
  given(await session.tryLock(key));
  await session.commit();
  assert(await isFree(witness, key));
});

lockTest(
  "a lock is given back when a statement is still in flight",
  async ({ driver, witness }) => {
    const key = lockKey();
    const session = await begin(driver);
    given(await session.tryLock(key));
    const statement = session.query("SELECT pg_sleep(0.05)");
    const lock = session.tryLock(lockKey());
    await session.rollback();
    assert.equal((await statement).rows.length, 1);
    given(await lock);
    assert(await isFree(witness, key));
  },
);

lockTest("a lock that somebody else has is nothing to give back", async ({ driver, witness }) => {
  const key = lockKey();
  const theirs = await begin(witness);
  given(await theirs.tryLock(key));
  const session = await begin(driver);
  const pid = BigInt(Number(await pidOf(session)));
  assert.equal(await session.tryLock(key), undefined);
  assert.equal(await session.tryLock(key), undefined);
  await session.rollback();
  assert(await isAlive(witness, pid));
  await session.begin();
  await theirs.commit();
  given(await session.tryLock(key));
  await session.release();
});

lockTest(
  "any text but NUL is a key, and each has a lock of its own",
  async ({ driver, witness }) => {
    const session = await begin(driver);
    const own = crypto.randomUUID();
    const long = `${own}${"é".repeat(5000)}`;
    const keys = [
      "",
      own,
      own.toUpperCase(),
      `${own} `,
      `${own}👩‍👩‍👧`,
      long,
      `${long}.`,
      `'${own}"\\`,
    ];
    for (const key of keys) given(await session.tryLock(key));
    for (const key of keys) assert(!await isFree(witness, key), key);
    await assert.rejects(session.tryLock("a\0b"), isDriverError("other", /"a\\u0000b".*NUL/));
    assert.equal((await session.query("SELECT 1")).rows.length, 1);
    await session.commit();
    for (const key of keys) assert(await isFree(witness, key), key);
  },
);

lockTest("a lock needs a transaction", async ({ driver }) => {
  const session = await driver.session();
  const refused = isDriverError("other", /no transaction is open/);
  await assert.rejects(session.tryLock(lockKey()), refused);
  await session.begin();
  await session.commit();
  await assert.rejects(session.tryLock(lockKey()), refused);
});

serverTest(
  "a lock has one holder at a time, however many want it",
  (server) =>
    withDriver(server, { connections: 20 }, async (driver) => {
      const keys = Array.from({ length: 5 }, lockKey);
      const holders = new Map<string, number>();
      let taken = 0;
      const fight = async (fighter: number): Promise<void> => {
        for (let round = 0; round < 200; round++) {
          const session = await begin(driver);
          const key = keys[(fighter + round * 7) % keys.length]!;
          if (await session.tryLock(key) !== undefined) {
            assert(!holders.has(key), `${key} has two holders`);
            holders.set(key, fighter);
            taken++;
            await session.query("SELECT 1");
            if (round % 3 === 0) await session.checkpoint!();
            assert.equal(holders.get(key), fighter);
            holders.delete(key);
          }
          if (round % 2 === 0) await session.commit();
          else await session.release();
        }
      };
      await Promise.all(Array.from({ length: 20 }, (_, fighter) => fight(fighter)));
      assert(taken >= 200, `${taken} of 4000`);
      for (const key of keys) assert(await isFree(driver, key));
    }),
);

async function begin(driver: Driver): Promise<Session> {
  const session = await driver.session();
  await session.begin();
  return session;
}
