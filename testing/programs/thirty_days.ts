import { ack, App, Broker, inbox, json, retryAfter, scheduleTable } from "../../mod.ts";
import type { Driver } from "../../src/driver/driver.ts";
import { SharedDriver } from "../shared_driver.ts";
import { TestApp } from "../test_app.ts";

/** What has become of the jobs of thirty days. */
export interface ThirtyDays {
  /** How many slots of the hourly schedule have published. */
  readonly slots: number;
  /** How many jobs were published. */
  readonly published: number;
  /** How many were done, and how often the one that was done most often. */
  readonly done: number;
  readonly mostOften: number;
  /** How many deliveries failed, to be delivered again. */
  readonly failed: number;
  /** How many deliveries were in work when their process crashed. */
  readonly crashed: number;
  /** How many rows are left. */
  readonly left: number;
}

/**
 * Lets thirty days of virtual time pass in a service whose schedule publishes jobs every hour, 5,000 in
 * all. Each takes minutes, every fifth fails twice before it is done, and once a day the process crashes
 * in the middle of its work.
 *
 * @param connect makes a driver for each process; of a database in memory, always the same
 */
export async function thirtyDays(connect: () => Driver): Promise<ThirtyDays> {
  const driver = connect();
  await SharedDriver.of(driver).open();
  try {
    await createMemory(driver);
    return await run(connect);
  } finally {
    await SharedDriver.of(driver).close();
  }
}

async function run(connect: () => Driver): Promise<ThirtyDays> {
  const done = new Map<number, number>();
  const failed = new Map<number, number>();
  const count = { slots: 0, published: 0, failed: 0, crashed: 0 };
  const service = (): App => serviceOf(connect(), done, failed, count);
  const first = await TestApp.start(service(), { now: Date.UTC(2030, 2, 1, 0, 30) });
  let app = first;
  for (let day = 0; day < DAYS; day++) {
    await app.advance({ hours: 11, minutes: 32 });
    count.crashed += app.deliveries.filter(({ endedAt }) => endedAt === undefined).length;
    await app.crash();
    app = await TestApp.join(first, service());
    await app.advance({ hours: 12, minutes: 28 });
  }
  await app.drain({ until: { minutes: 29 } });
  const [row] = await app.query("SELECT COUNT(*) AS n FROM jobs");
  await app.stop();
  await first[Symbol.asyncDispose]();
  return {
    ...count,
    done: done.size,
    mostOften: Math.max(...done.values()),
    left: Number(row!.n),
  };
}

async function createMemory(driver: Driver): Promise<void> {
  const session = await driver.session();
  try {
    await session.query(memory.ddl(driver.name.toLowerCase() as "sqlite"));
  } finally {
    await session.release();
  }
}

function serviceOf(
  driver: Driver,
  done: Map<number, number>,
  failed: Map<number, number>,
  count: { slots: number; published: number; failed: number },
): App {
  const slots = table.queue("slots");
  const jobs = table.queue("jobs");
  const hourly = slots.subscribe({ transactional: true }, async (_, delivery) => {
    const from = Math.round(count.slots * JOBS / SLOTS);
    const to = Math.round((count.slots + 1) * JOBS / SLOTS);
    for (let number = from; number < to; number++) await delivery.publish(jobs, { number });
    count.slots++;
    count.published += to - from;
  });
  const work = jobs.subscribe({ workers: 4, lease: { minutes: 1 } }, async ({ number }) => {
    await new Promise((resolve) => setTimeout(resolve, (1 + number % 5) * 60_000));
    const failures = failed.get(number) ?? 0;
    if (number % 5 === 0 && failures < 2) {
      failed.set(number, failures + 1);
      count.failed++;
      return retryAfter({ minutes: 10 });
    }
    done.set(number, (done.get(number) ?? 0) + 1);
    return ack();
  });
  const broker = new Broker(driver).createTables(table).include(hourly).include(work);
  return new App({ name: "thirty days" }).withBroker(broker)
    .schedule("0 * * * *", slots, { number: -1 }, { scheduleTable: memory });
}

const table = inbox("jobs", {
  id: "id",
  group: "queue",
  attempt: "attempt",
  retryAfter: "retry_after",
  lockedUntil: "locked_until",
  payload: json<{ number: number }>("payload"),
});
const memory = scheduleTable("schedules");
const DAYS = 30;
const SLOTS = DAYS * 24;
const JOBS = 5_000;
