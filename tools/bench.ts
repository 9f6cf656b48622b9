/**
 * Measures what a test costs: a job of five minutes with its renewals, from start to stop, and thirty
 * days of an hourly service. Runs on SQLite, and on the servers whose variable is set
 * (`HOLDFAST_TEST_POSTGRES`, `HOLDFAST_TEST_MARIADB`, `HOLDFAST_TEST_MYSQL`). Only ratios within one run
 * mean anything.
 *
 * @module
 */

import { ack, App, Broker, inbox, json } from "../mod.ts";
import type { Driver } from "../src/driver/driver.ts";
import { mysql } from "../src/mysql/mod.ts";
import { postgres } from "../src/postgres/mod.ts";
import { sqlite } from "../src/sqlite/mod.ts";
import { TestApp, TestDatabases } from "../testing/mod.ts";
import { thirtyDays } from "../testing/programs/thirty_days.ts";

/** What was measured on one database, in milliseconds. */
interface Figures {
  readonly fiveMinutes: number;
  readonly thirtyDays: number;
}

const RUNS = 20;
const SERVERS: readonly [name: string, variable: string, connect: (url: string) => Driver][] = [
  ["Postgres", "HOLDFAST_TEST_POSTGRES", (url) => postgres(url)],
  ["MariaDB", "HOLDFAST_TEST_MARIADB", (url) => mysql(url)],
  ["MySQL", "HOLDFAST_TEST_MYSQL", (url) => mysql(url)],
];
const jobs = inbox("naps", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ minutes: number }>("payload"),
});

if (import.meta.main) {
  const base = await onSqlite();
  print("SQLite", base, base);
  for (const [name, variable, connect] of SERVERS) {
    const url = Deno.env.get(variable);
    if (url === undefined) console.log(`${name}: not measured, ${variable} is not set`);
    else print(name, await onServer(url, connect), base);
  }
}

async function onSqlite(): Promise<Figures> {
  const driver = sqlite(":memory:");
  return {
    fiveMinutes: await median(() => fiveMinutes(sqlite(":memory:"))),
    thirtyDays: await timeOf(() => thirtyDays(() => driver)),
  };
}

async function onServer(url: string, connect: (url: string) => Driver): Promise<Figures> {
  const databases = new TestDatabases({ url, connect });
  try {
    await using database = await databases.create();
    return {
      fiveMinutes: await median(() => fiveMinutes(database.connect())),
      thirtyDays: await timeOf(() => thirtyDays(() => database.connect())),
    };
  } finally {
    await databases.close();
  }
}

async function fiveMinutes(driver: Driver): Promise<void> {
  const nap = jobs.queue("naps").subscribe(async ({ minutes }) => {
    await new Promise((resolve) => setTimeout(resolve, minutes * 60_000));
    return ack();
  });
  const broker = new Broker(driver).createTables(jobs).include(nap);
  await using app = await TestApp.start(new App({ name: "naps" }).withBroker(broker));
  await app.publish(jobs.queue("naps"), { minutes: 5 });
  await app.advance({ minutes: 5 });
  app.subscriber(nap).assertCalledOnce().assertSettled(ack());
}

async function median(run: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < RUNS; index++) times.push(await timeOf(run));
  return times.sort((a, b) => a - b)[RUNS / 2]!;
}

async function timeOf(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

function print(name: string, figures: Figures, base: Figures): void {
  console.log(
    `${name}: five minutes ${compared("fiveMinutes")}, thirty days ${compared("thirtyDays")}`,
  );
  function compared(figure: keyof Figures): string {
    const ratio = (figures[figure] / base[figure]).toFixed(1);
    return `${figures[figure].toFixed(0)} ms (${ratio} x SQLite)`;
  }
}
