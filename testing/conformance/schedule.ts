import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  DeclarationError,
  type Driver,
  type ScheduleOptions,
  scheduleTable,
  TestApp,
} from "./holdfast.ts";
import { FULL_MARKED_TABLES, FULL_TABLES } from "./full_service.ts";
import { subscribe } from "./roles_service.ts";
import type { ConformanceTest } from "./test_database.ts";

const SLOTS = scheduleTable("schedules");
const START = Date.UTC(2030, 0, 1, 0, 0, 30);

/** An app that publishes a tick every minute, and handles it. */
function ticking(driver: Driver, options: ScheduleOptions, table = FULL_TABLES.lease) {
  const ticks = subscribe(table, "ticks", () => ack());
  const broker = new Broker(driver).createTables(table).include(ticks);
  const app = new App({ name: "clock" }).withBroker(broker)
    .schedule("* * * * *", table.queue("ticks"), (slot) => ({ name: slot.toISOString() }), options);
  return { app, ticks };
}

/** The table of slots, made before the app that needs it. */
async function makeTable(driver: Driver): Promise<void> {
  await using broker = await new Broker(driver).connect();
  const session = await broker.driver.session();
  const name = broker.driver.name.toLowerCase() as "postgres" | "mysql" | "sqlite";
  await session.query(SLOTS.ddl(name).replace(/;\s*$/, ""));
  await session.release();
}

/** What a schedule promises. */
export const scheduleTests: readonly ConformanceTest[] = [
  {
    name: "a schedule publishes each slot, once over all processes that run it",
    needs: "connections",
    async run(database) {
      await makeTable(database.connect());
      const options = { scheduleTable: SLOTS };
      const [one, two] = [1, 2].map(() => ticking(database.connect(), options));
      await using test = await TestApp.start(one!.app, { now: START });
      await using other = await TestApp.join(test, two!.app);
      await test.advance({ minutes: 5 });
      const names = [
        ...test.subscriber(one!.ticks).received(),
        ...other.subscriber(two!.ticks).received(),
      ]
        .map(({ name }) => name).toSorted();
      assert.deepEqual(
        names,
        [1, 2, 3, 4, 5].map((minute) => new Date(Date.UTC(2030, 0, 1, 0, minute)).toISOString()),
      );
    },
  },
  {
    name: "with a unique key and processed rows that are kept a schedule needs no table of its own",
    needs: "connections",
    async run(database) {
      const table = FULL_MARKED_TABLES.lease;
      const [one, two] = [1, 2].map(() => ticking(database.connect(), {}, table));
      await using test = await TestApp.start(one!.app, { now: START });
      await using other = await TestApp.join(test, two!.app);
      await test.advance({ minutes: 3 });
      assert.equal(test.deliveries.length + other.deliveries.length, 3);
    },
  },
  {
    name: "a slot that passed while no process ran is made up for once, if that is asked for",
    needs: "connections",
    async run(database) {
      await makeTable(database.connect());
      for (const [catchUp, expected] of [[true, 1], [false, 0]] as const) {
        const options = { scheduleTable: SLOTS, catchUp, name: `every minute ${catchUp}` };
        {
          await using test = await TestApp.start(ticking(database.connect(), options).app, {
            now: START,
          });
          await test.advance({ minutes: 1 });
          assert.equal(test.deliveries.length, 1);
        }
        const { app, ticks } = ticking(database.connect(), options);
        await using test = await TestApp.start(app, { now: START + 3_600_000 });
        await test.advance({ seconds: 10 });
        test.subscriber(ticks).assertCalled(expected);
        if (catchUp) test.subscriber(ticks).assertReceived({ name: "2030-01-01T01:00:00.000Z" });
        await test.advance({ seconds: 30 });
        test.subscriber(ticks).assertCalled(expected + 1);
      }
    },
  },
  {
    name: "a schedule whose table is not there is refused with the statement that creates it",
    async run(database) {
      const { app } = ticking(database.connect(), { scheduleTable: SLOTS });
      await assert.rejects(
        app.start(),
        /schedule ticks \* \* \* \* \*" did not start: Cannot use the schedule table "schedules": [^]*CREATE TABLE schedules/,
      );
    },
  },
  {
    name: "a slot whose publish fails is tried again until it succeeds",
    async run(database) {
      const table = FULL_MARKED_TABLES.lease;
      let tries = 0;
      const ticks = subscribe(table, "ticks", () => ack());
      const broker = new Broker(database.connect()).createTables(table).include(ticks);
      const app = new App({ name: "clock" }).withBroker(broker)
        .schedule("* * * * *", table.queue("ticks"), () => {
          if (++tries < 3) throw new Error("Not yet");
          return { name: "tick" };
        });
      await using test = await TestApp.start(app, { now: START });
      await test.advance({ seconds: 45 });
      test.subscriber(ticks).assertCalledOnce().assertReceived({ name: "tick" });
      assert.equal(tries, 3);
    },
  },
  {
    name: "a schedule that nothing would remember is refused, and so is one that is none",
    async run(database) {
      const driver = database.connect();
      assert.throws(() => ticking(driver, {}), (error: unknown) => {
        assert(error instanceof DeclarationError);
        assert.match(error.message, /nothing would remember which slots/);
        return true;
      });
      assert.throws(
        () => ticking(driver, { catchUp: true }, FULL_MARKED_TABLES.lease),
        /Cannot catch up/,
      );
      const table = FULL_MARKED_TABLES.lease;
      for (const [pattern, timeZone] of [["every day", "UTC"], ["* * * * *", "Mars/Olympus"]]) {
        const broker = new Broker(database.connect()).createTables(table);
        const app = new App({ name: "clock" }).withBroker(broker)
          .schedule(pattern!, table.queue("ticks"), { name: "tick" }, { timeZone });
        await assert.rejects(app.start(), /Cannot schedule by/);
      }
    },
  },
];
