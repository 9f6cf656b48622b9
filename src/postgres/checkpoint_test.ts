import assert from "node:assert/strict";
import type { Driver, Session } from "../driver/driver.ts";
import { given, isAlive, isFree, lockKey, type LockTest, lockTest } from "./locks_for_test.ts";
import { firstRow, isDriverError, pidOf, query, tableName, until } from "./server_for_test.ts";

const DEFERRED = "UNIQUE DEFERRABLE INITIALLY DEFERRED";

lockTest("a checkpoint commits, and keeps the connection and its locks", async (context) => {
  const { driver, witness } = context;
  await withNotes(context, "PRIMARY KEY", async (notes) => {
    const key = lockKey();
    const session = await begin(driver);
    const holder = given(await session.tryLock(key));
    for (let id = 1; id <= 3; id++) {
      await session.query(`INSERT INTO ${notes} VALUES ($1)`, [id]);
      await session.checkpoint!();
      assert.equal(await count(witness, notes), id);
      assert.equal(BigInt(Number(await pidOf(session))), holder);
      assert(!await isFree(witness, key));
      assert.equal(await session.tryLock(key), holder);
    }
    const settings = await firstRow(
      session,
      "SELECT current_setting('transaction_isolation') AS isolation, " +
        "current_setting('idle_in_transaction_session_timeout') AS idle",
    );
    assert.deepEqual(settings, { isolation: "read committed", idle: "45s" });
    await session.query(`INSERT INTO ${notes} VALUES (4)`);
    await session.rollback();
    assert.equal(await count(witness, notes), 3);
    assert(await isFree(witness, key));
    assert(!session.lost.aborted);
  });
});

lockTest(
  "a checkpoint of a failed transaction is an error, and its locks stay",
  async (context) => {
    const { driver, witness } = context;
    await withNotes(context, "PRIMARY KEY", async (notes) => {
      const key = lockKey();
      const session = await begin(driver);
      given(await session.tryLock(key));
      await session.query(`INSERT INTO ${notes} VALUES (1)`);
      await assert.rejects(session.query("SELECT 1 / 0"));
      await assert.rejects(
        session.checkpoint!(),
        isDriverError("other", /^Cannot commit: a statement had failed/),
      );
      assert.equal(await count(witness, notes), 0);
      assert(!await isFree(witness, key));
      await session.query(`INSERT INTO ${notes} VALUES (2)`);
      await session.commit();
      assert.equal(await count(witness, notes), 1);
      assert(await isFree(witness, key));
    });
  },
);

lockTest(
  "what is deferred to COMMIT fails at a checkpoint, and its locks stay",
  async (context) => {
    const { driver, witness } = context;
    await withNotes(context, DEFERRED, async (notes) => {
      const key = lockKey();
      const session = await begin(driver);
      const holder = given(await session.tryLock(key));
      for (let time = 0; time < 2; time++) await session.query(`INSERT INTO ${notes} VALUES (1)`);
      await assert.rejects(session.checkpoint!(), isDriverError("constraint"));
      assert(!await isFree(witness, key));
      for (let time = 0; time < 2; time++) await session.query(`INSERT INTO ${notes} VALUES (1)`);
      await assert.rejects(session.commit(), isDriverError("constraint"));
      assert(await isFree(witness, key));
      assert(await isAlive(witness, holder), "the connection is kept");
      assert.equal(await count(witness, notes), 0);
    });
  },
);

for (const end of ["checkpoint", "commit"] as const) {
  lockTest(`a COMMIT that fails all the same at ${end} leaves no lock`, async (context) => {
    const { driver, witness } = context;
    await withNotes(context, DEFERRED, async (notes) => {
      await failAtCommit(witness, notes);
      const key = lockKey();
      const session = await begin(driver);
      given(await session.tryLock(key));
      given(await session.tryLock(`${key} 👩‍👩‍👧`));
      await session.query(`INSERT INTO ${notes} VALUES (1)`);
      await assert.rejects(session[end]!(), isDriverError("constraint", /Cannot commit.*23505/));
      await assert.rejects(session.checkpoint!(), /no transaction is open/);
      await until(() => isFree(witness, key));
      assert(!session.lost.aborted);
      await session.release();
    });
  });
}

lockTest(
  "a COMMIT that fails ends the connection from another one, if need be",
  async (context) => {
    const { driver, witness } = context;
    await withNotes(context, DEFERRED, async (notes) => {
      await failAtCommit(witness, notes);
      const key = lockKey();
      const [session, spare] = [await begin(driver), await begin(driver)];
      const holder = given(await session.tryLock(key));
      await session.query(`INSERT INTO ${notes} VALUES (1)`);
      await spare.release();
      await assert.rejects(session.commit(), isDriverError("constraint"));
      await until(async () => !await isAlive(witness, holder));
      assert(await isFree(witness, key));
    });
  },
);

lockTest("a COMMIT that fails at a checkpoint without locks ends the transaction", async (
  context,
) => {
  await withNotes(context, DEFERRED, async (notes) => {
    const session = await begin(context.driver);
    const pid = BigInt(Number(await pidOf(session)));
    for (let time = 0; time < 2; time++) await session.query(`INSERT INTO ${notes} VALUES (1)`);
    await assert.rejects(session.checkpoint!(), isDriverError("constraint"));
    await assert.rejects(session.checkpoint!(), /no transaction is open/);
    assert(await isAlive(context.witness, pid));
    await session.begin();
    await session.release();
  });
});

lockTest(
  "nothing comes between during a checkpoint, and a release waits for it",
  async (context) => {
    const { driver, witness } = context;
    await withNotes(context, "PRIMARY KEY", async (notes) => {
      const key = lockKey();
      const session = await begin(driver);
      given(await session.tryLock(key));
      const inserted = session.query(`INSERT INTO ${notes} VALUES (1)`);
      const saved = session.checkpoint!();
      const refused = isDriverError("other", /is being committed/);
      await assert.rejects(session.query("SELECT 1"), refused);
      await assert.rejects(session.tryLock(lockKey()), refused);
      await assert.rejects(session.checkpoint!(), refused);
      await session.release();
      await saved;
      assert.equal((await inserted).changes, 1);
      assert.equal(await count(witness, notes), 1);
      assert(await isFree(witness, key));
    });
  },
);

lockTest("a checkpoint needs a transaction", async ({ driver }) => {
  const session = await driver.session();
  await assert.rejects(session.checkpoint!(), isDriverError("other", /no transaction is open/));
});

async function begin(driver: Driver): Promise<Session> {
  const session = await driver.session();
  await session.begin();
  return session;
}

async function withNotes(
  { witness }: LockTest,
  constraint: string,
  test: (notes: string) => Promise<void>,
): Promise<void> {
  const notes = tableName();
  await query(witness, `CREATE TABLE ${notes} (id int8 ${constraint})`);
  try {
    await test(notes);
  } finally {
    await query(witness, `DROP TABLE ${notes}`);
    await query(witness, `DROP FUNCTION IF EXISTS ${notes}_double`);
  }
}

/** A trigger that runs when constraints are checked, and puts off a violation once more. */
async function failAtCommit(witness: Driver, notes: string): Promise<void> {
  await query(
    witness,
    `CREATE FUNCTION ${notes}_double() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF pg_trigger_depth() = 1 THEN
        SET CONSTRAINTS ALL DEFERRED;
        INSERT INTO ${notes} VALUES (NEW.id);
      END IF;
      RETURN NULL;
    END $$`,
  );
  await query(
    witness,
    `CREATE CONSTRAINT TRIGGER double AFTER INSERT ON ${notes} DEFERRABLE INITIALLY DEFERRED ` +
      `FOR EACH ROW EXECUTE FUNCTION ${notes}_double()`,
  );
}

async function count(witness: Driver, notes: string): Promise<number> {
  return Number((await firstRow(witness, `SELECT count(*) FROM ${notes}`)).count);
}
