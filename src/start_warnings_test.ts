import { configure, type LogRecord, reset } from "@logtape/logtape";
import assert from "node:assert/strict";
import { TestApp } from "../testing/mod.ts";
import { App } from "./app.ts";
import { Broker } from "./broker.ts";
import { inbox } from "./inbox.ts";
import { ack, retryAfter } from "./outcome.ts";
import { sqlite } from "./sqlite/mod.ts";
import { text } from "./text.ts";

Deno.test("a delay that no column can keep is warned of once, and the row comes back", () =>
  withWarnings(async (warnings) => {
    const jobs = inbox(
      "jobs",
      { id: "id", attempt: "attempt", payload: text("payload") },
      { advisoryLock: "jobs-{id}" },
    );
    const subscription = jobs.queue().subscribe((_, { attempt }) =>
      attempt < 4 ? retryAfter({ hours: 1 }) : ack()
    );
    const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(subscription);
    await using test = await TestApp.start(new App({ name: "app" }).withBroker(broker));
    await test.publish(jobs.queue(), "a");
    await test.advance({ seconds: 10 });
    test.subscriber(subscription).assertCalled(4).assertSettled(ack());
    assert.equal(warnings.length, 1);
    assert.match(
      warnings[0]!,
      /^Queue jobs cannot delay messages.*give its table the role retryAfter$/,
    );
  }));

Deno.test("a claim that no index serves is warned of at start, with its subscription", () =>
  withWarnings(async (warnings) => {
    const jobs = inbox("jobs", {
      id: "id",
      retryAfter: "due",
      lockedUntil: "locked_until",
      payload: text("payload"),
    });
    const folder = await Deno.makeTempDir();
    try {
      const subscription = jobs.queue("mails").subscribe(() => {});
      const start = () => {
        const driver = sqlite(`${folder}/jobs.db`);
        const broker = new Broker(driver).createTables(jobs).include(subscription);
        return TestApp.start(new App({ name: "app" }).withBroker(broker));
      };
      {
        await using test = await start();
        await test.query("DROP INDEX jobs_free");
      }
      assert.deepEqual(warnings, []);
      await using _again = await start();
      assert.equal(warnings.length, 1);
      assert.match(warnings[0]!, /"jobs" \(subscription "mails"\).*CREATE INDEX "jobs_free"/);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  }));

/** Runs a test with what Holdfast warns of. */
async function withWarnings(test: (warnings: readonly string[]) => Promise<void>): Promise<void> {
  const warnings: string[] = [];
  await configure({
    sinks: {
      warnings: ({ message }: LogRecord) =>
        void warnings.push(
          message.map((part) => typeof part === "string" ? part : String(part)).join(""),
        ),
    },
    loggers: [
      { category: "holdfast", sinks: ["warnings"], lowestLevel: "warning" },
      { category: ["logtape", "meta"], lowestLevel: "error" },
    ],
  });
  try {
    await test(warnings);
  } finally {
    await reset();
  }
}
