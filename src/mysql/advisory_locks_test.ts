import assert from "node:assert/strict";
import { begin, given, isAlive, isFree, isUnused, lockTest } from "./locks_for_test.ts";
import { connectionOf, isDriverError, serverTest, withDriver } from "./server_for_test.ts";

lockTest("a lock keeps every other session out", async ({ driver, witness, lockKey }) => {
  const key = lockKey();
  const session = await begin(driver);
  const holder = given(await session.tryLock(key));
  assert.equal(holder, BigInt(await connectionOf(session)));
  for (const other of [driver, witness]) assert(!await isFree(other, key));
  assert(!await isUnused(witness, key));
  assert(await isFree(witness, lockKey()));
  await session.commit();
  for (const other of [driver, witness]) assert(await isFree(other, key));
  await session.release();
});

for (const end of ["commit", "rollback", "release"] as const) {
  lockTest(`a lock taken twice is given back by one ${end}`, async (
    { driver, witness, lockKey },
  ) => {
    const [key, other] = [lockKey(), lockKey()];
    const session = await begin(driver);
    const holder = given(await session.tryLock(key));
    assert.equal(await session.tryLock(key), holder);
    assert.deepEqual(
      await Promise.all([session.tryLock(other), session.tryLock(other)]),
      [holder, holder],
    );
    await session[end]();
    for (const each of [key, other]) assert(await isUnused(witness, each));
    assert(await isAlive(witness, holder), "the connection is kept");
    await session.begin();
    await session.release();
  });
}

for (const end of ["rollback", "release"] as const) {
  lockTest(`a lock is given back by ${end} after a deadlock`, async (
    { driver, witness, lockKey },
  ) => {
    const key = lockKey();
    const session = await begin(driver);
    const holder = given(await session.tryLock(key));
    const deadlock = "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock'";
    await assert.rejects(session.query(deadlock), isDriverError("conflict", /1213/));
    const refused = isDriverError("conflict", /nothing more was sent/);
    await assert.rejects(session.tryLock(key), refused);
    await assert.rejects(session.checkpoint!(), refused);
    await assert.rejects(session.commit(), refused);
    assert(!await isUnused(witness, key));
    await session[end]();
    assert(await isUnused(witness, key));
    assert(await isAlive(witness, holder), "the connection is kept");
    await session.release();
  });
}

lockTest("a lock outlives a savepoint", async ({ driver, witness, lockKey }) => {
  const key = lockKey();
  const session = await begin(driver);
  await session.query("SAVEPOINT a");
  given(await session.tryLock(key));
  await session.query("ROLLBACK TO SAVEPOINT a");
  assert(!await isFree(witness, key));
  given(await session.tryLock(key));
  await session.commit();
  assert(await isUnused(witness, key));
  await session.release();
});

for (const end of ["commit", "rollback"] as const) {
  lockTest(`a release in the midst of a ${end} waits until the locks are given back`, async (
    { driver, witness, lockKey },
  ) => {
    for (let round = 0; round < 30; round++) {
      const keys = [lockKey(), lockKey()];
      const session = await begin(driver);
      for (const key of keys) given(await session.tryLock(key));
      const ended = session[end]();
      ended.catch(() => {});
      for (let turn = 0; turn < round % 10; turn++) {
        await new Promise((resolve) => setTimeout(resolve));
      }
      await session.release();
      for (const key of keys) assert(await isUnused(witness, key), `${round}`);
      // One that has not been sent is overtaken by the rollback.
      await ended.catch(isDriverError("other", /the transaction has ended/));
    }
  });
}

lockTest("a lock is given back when a statement is still in flight", async (
  { driver, witness, lockKey },
) => {
  const [key, other] = [lockKey(), lockKey()];
  const session = await begin(driver);
  given(await session.tryLock(key));
  const statement = session.query("SELECT SLEEP(0.05) AS slept");
  const late = assert.rejects(session.tryLock(other), isDriverError("other", /has ended/));
  await new Promise((resolve) => setTimeout(resolve));
  await session.release();
  assert(await isUnused(witness, key));
  assert.equal((await statement).rows.length, 1);
  await late;
});

lockTest("a lock that somebody else has is nothing to give back", async (
  { driver, witness, lockKey },
) => {
  const key = lockKey();
  const theirs = await begin(witness);
  given(await theirs.tryLock(key));
  const session = await begin(driver);
  const connection = BigInt(await connectionOf(session));
  for (let time = 0; time < 2; time++) assert.equal(await session.tryLock(key), undefined);
  await session.rollback();
  assert(await isAlive(witness, connection));
  await session.begin();
  await theirs.commit();
  await theirs.release();
  given(await session.tryLock(key));
  await session.release();
});

lockTest("any text is a key, and each has a lock of its own", async (
  { driver, witness, lockKey },
) => {
  const session = await begin(driver);
  const own = lockKey();
  const long = "é".repeat(5000);
  const ends = [
    " ",
    "\0",
    "é",
    "e",
    "👩‍👩‍👧",
    long,
    `${long}.`,
    "a".repeat(64),
    "a".repeat(65),
    `'"\\`,
  ];
  const keys = ["", own, own.toUpperCase(), ...ends.map((end) => `${own}${end}`)];
  for (const key of keys) given(await session.tryLock(key));
  for (const key of keys) assert(!await isFree(witness, key), key);
  await session.commit();
  for (const key of keys) assert(await isUnused(witness, key), key);
  await session.release();
});

lockTest("a lock needs a transaction", async ({ driver, lockKey }) => {
  const session = await driver.session();
  const refused = isDriverError("other", /^Cannot take a lock: no transaction is open/);
  await assert.rejects(session.tryLock(lockKey()), refused);
  await session.begin();
  await session.commit();
  await assert.rejects(session.tryLock(lockKey()), refused);
  await session.release();
});

serverTest(
  "a lock has one holder at a time, however many want it",
  (server) =>
    withDriver(server, { connections: 20 }, async (driver) => {
      const keys = Array.from({ length: 5 }, () => `key ${crypto.randomUUID()}`);
      const holders = new Map<string, number>();
      let taken = 0;
      const fight = async (fighter: number): Promise<void> => {
        for (let round = 0; round < 100; round++) {
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
          await session.release();
        }
      };
      await Promise.all(Array.from({ length: 20 }, (_, fighter) => fight(fighter)));
      assert(taken >= 100, `${taken} of 2000`);
      for (const key of keys) assert(await isUnused(driver, key));
    }),
);
