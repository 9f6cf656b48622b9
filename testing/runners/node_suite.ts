import assert from "node:assert/strict";
import { createRequire } from "node:module";
import process from "node:process";
import * as timers from "node:timers";
import * as sleeps from "node:timers/promises";
import { setInterval as ticks, setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { ack } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { mysql } from "@holdfast/inbox/mysql";
import { postgres } from "@holdfast/inbox/postgres";
import { sqlite } from "@holdfast/inbox/sqlite";
import { TestApp } from "@holdfast/inbox/testing";
import { napService } from "./nap_service.ts";
import type { TestRunner } from "./test_runner.ts";

/** The servers of the environment, on each of which one test runs. */
const SERVERS: readonly { readonly name: string; readonly driver: () => Driver }[] = [
  ...server("Postgres", "HOLDFAST_TEST_POSTGRES", postgres),
  ...server("MariaDB", "HOLDFAST_TEST_MARIADB", mysql),
];

/** Tests of what is Node's own, and of clients that are loaded by it. */
export function nodeSuite({ it }: Pick<TestRunner, "it">): void {
  it("imports of node:timers and node:timers/promises are virtual in a handler", async () => {
    const before = { ...timers, ...timers.promises, ...sleeps };
    const required = createRequire(import.meta.url)("node:timers") as typeof timers;
    const seen: Record<string, number> = {};
    const service = napService(sqlite(":memory:"), async () => {
      const mark = (name: string) => seen[name] = Date.now();
      await new Promise((resolve) => timers.setTimeout(resolve, 60_000));
      mark("timers.setTimeout");
      await new Promise((resolve) => required.setTimeout(resolve, 60_000));
      mark("required setTimeout");
      await sleep(60_000);
      mark("promises setTimeout");
      await timers.promises.setTimeout(60_000);
      mark("timers.promises.setTimeout");
      await promisify(timers.setTimeout)(60_000);
      mark("promisified setTimeout");
      await sleeps.scheduler.wait(60_000);
      mark("scheduler.wait");
      for await (const _ of ticks(60_000)) break;
      mark("promises setInterval");
    });
    const app = await TestApp.start(service.app, { now: 0 });
    await app.publish(service.queue, { minutes: 0 });
    await sleep(1);
    await new Promise((resolve) => timers.setTimeout(resolve, 1));
    assert.equal(app.time.elapsed, 0);
    await app.settled();
    await app.stop();
    assert.deepEqual(seen, {
      "timers.setTimeout": 60_000,
      "required setTimeout": 120_000,
      "promises setTimeout": 180_000,
      "timers.promises.setTimeout": 240_000,
      "promisified setTimeout": 300_000,
      "scheduler.wait": 360_000,
      "promises setInterval": 420_000,
    });
    assert.deepEqual({ ...timers, ...timers.promises, ...sleeps }, before);
  });

  for (const { name, driver } of SERVERS) {
    it(`on ${name} a job of five minutes keeps its lease of one`, async () => {
      const table = `naps_${crypto.randomUUID().replaceAll("-", "")}`;
      const service = napService(driver(), undefined, table);
      const app = await TestApp.start(service.app);
      try {
        await app.publish(service.queue, { minutes: 5 });
        await app.advance({ minutes: 5 });
        app.subscriber(service.subscription).assertCalledOnce().assertSettled(ack());
        assert.deepEqual((await app.query(`SELECT id FROM ${table}`)).length, 0);
      } finally {
        await app.stop();
        await drop(driver(), table);
      }
    });
  }
}

function server(
  name: string,
  variable: string,
  connect: (url: string) => Driver,
): { readonly name: string; readonly driver: () => Driver }[] {
  const url = process.env[variable];
  if (url) return [{ name, driver: () => connect(url) }];
  console.log(`skipped: ${variable} is not set to the URL of a ${name} server`);
  return [];
}

async function drop(driver: Driver, table: string): Promise<void> {
  await driver.open();
  try {
    const session = await driver.session();
    await session.query(`DROP TABLE ${table}`, []);
    await session.release();
  } finally {
    await driver.close();
  }
}
