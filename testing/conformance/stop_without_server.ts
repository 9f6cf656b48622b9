import assert from "node:assert/strict";
import type { TestServer } from "../../tools/servers/server.ts";
import { testServer } from "../../tools/servers/test_server.ts";
import { ack, App, Broker, type Driver } from "./holdfast.ts";
import { FORMS, FULL_TABLES } from "./full_service.ts";
import { subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";

/** Registers, for each form, that an app whose server is gone stops in time, and says what it left. */
export function testStopWithoutServer(
  title: string,
  start: () => Promise<TestServer>,
  connect: (url: string) => Driver,
): void {
  for (const form of FORMS) {
    testServer(`${title}, ${form}: an app whose server is gone stops in time`, async () => {
      await using server = await start();
      const table = FULL_TABLES[form];
      const started = Promise.withResolvers<void>();
      const jobs = subscribe(table, "jobs", async () => {
        started.resolve();
        await sleep(1_000);
        return ack();
      });
      const broker = new Broker(connect(server.url)).createTables(table).include(jobs);
      const app = new App({ name: "suite", drain: 3_000, abortTimeout: 1_000, closeTimeout: 2_000 })
        .withBroker(broker);
      const running = await app.start();
      await app.publish(table.queue("jobs"), { name: "a" });
      await started.promise;
      await server.kill();
      const begin = performance.now();
      const report = await running.stop();
      const seconds = (performance.now() - begin) / 1000;
      console.log(`stopped in ${seconds.toFixed(1)} s: ${JSON.stringify(report.queues)}`);
      assert(seconds < 6.5, `${seconds} s, of 6 s`);
      assert.equal(report.queues[0]?.finished, 0);
      await server.restart();
      const session = await reconnect(connect(server.url));
      const { rows } = await session.query("SELECT attempt FROM jobs");
      assert.equal(rows.length, 1, "the message is there");
      await session.close();
    });
  }
}

async function reconnect(driver: Driver) {
  for (let tries = 0;; tries++) {
    try {
      await driver.open();
      break;
    } catch (error) {
      if (tries === 100) throw error;
      await sleep(100);
    }
  }
  const session = await driver.session();
  return {
    query: (text: string) => session.query(text),
    async close() {
      await session.release();
      await driver.close();
    },
  };
}
