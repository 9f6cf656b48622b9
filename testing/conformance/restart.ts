import assert from "node:assert/strict";
import type { TestServer } from "../../tools/servers/server.ts";
import { testServer } from "../../tools/servers/test_server.ts";
import { ack, type Driver, TestApp } from "./holdfast.ts";
import { advisoryLockService, leaseService, rowLockService } from "./lease_service.ts";
import { withLog } from "./with_log.ts";

const SERVICES = {
  lease: leaseService,
  "row lock": rowLockService,
  "advisory lock": advisoryLockService,
} as const;

/** Registers, for each form, that work goes on by itself after a server was killed and restarted. */
export function testRestart(
  title: string,
  start: () => Promise<TestServer>,
  connect: (url: string) => Driver,
): void {
  for (const [form, service] of Object.entries(SERVICES)) {
    testServer(
      `${title}, ${form}: work resumes by itself after the server is restarted, in few words`,
      () =>
        withLog(async (lines) => {
          await using server = await start();
          const { app, queue, subscription } = service(connect(server.url), () => ack());
          await using test = await TestApp.startLive(app);
          await test.publish(queue, { name: "before" });
          await server.kill();
          await test.advance({ milliseconds: 1_500 });
          await assert.rejects(test.publish(queue, { name: "while it is down" }));
          await server.restart();
          await untilPublished(test, () => test.publish(queue, { name: "after" }));
          const end = Date.now() + 40_000;
          while (test.deliveries.length < 2 && Date.now() < end) {
            await test.advance({ milliseconds: 50 });
          }
          await test.settled();
          test.subscriber(subscription).assertCalled(2).assertReceived({ name: "after" });
          const claims = lines.filter(({ category }) => category[1] === "claim");
          assert.deepEqual(claims.map(({ level }) => level), ["error", "info"]);
        }),
    );
  }
}

/** Publishing is the caller's to repeat. */
async function untilPublished(test: TestApp, publish: () => Promise<unknown>): Promise<void> {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      await publish();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await test.advance({ milliseconds: 100 });
    }
  }
}
