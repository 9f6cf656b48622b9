import assert from "node:assert/strict";
import { configure, type LogRecord, reset } from "@logtape/logtape";
import { ack, TestApp } from "../../testing/conformance/holdfast.ts";
import { leaseService, rowLockService } from "../../testing/conformance/lease_service.ts";
import { startMariadb } from "../../tools/servers/mariadb.ts";
import { startMysql } from "../../tools/servers/mysql.ts";
import { testServer } from "../../tools/servers/test_server.ts";
import { mysql } from "./mod.ts";

const SERVERS = [["MariaDB", startMariadb], ["MySQL", startMysql]] as const;
const FORMS = ["lease", "row lock"] as const;

for (const [title, start, form] of cases()) {
  testServer(
    `${title}, ${form}: work resumes by itself after the server is restarted, in few words`,
    async () => {
      const lines: LogRecord[] = [];
      await configure({
        sinks: { memory: (line) => void lines.push(line) },
        loggers: [
          { category: "holdfast", sinks: ["memory"], lowestLevel: "info" },
          { category: ["logtape", "meta"], lowestLevel: "error" },
        ],
      });
      try {
        await using server = await start();
        const service = form === "lease" ? leaseService : rowLockService;
        const { app, queue, subscription } = service(mysql(server.url), () => ack());
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
        test.subscriber(subscription).assertCalled(2).assertReceived({ name: "after" });
        const claims = lines.filter(({ category }) => category[1] === "claim");
        assert.deepEqual(claims.map(({ level }) => level), ["error", "info"]);
      } finally {
        await reset();
      }
    },
  );
}

function cases() {
  return SERVERS.flatMap(([title, start]) => FORMS.map((form) => [title, start, form] as const));
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
