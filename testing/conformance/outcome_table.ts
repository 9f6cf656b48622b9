import assert from "node:assert/strict";
import {
  ack,
  deadLetter,
  drop,
  type Form,
  type Outcome,
  retry,
  retryAfter,
  TestApp,
} from "./holdfast.ts";
import { FULL_MARKED_TABLES, FULL_TABLES, type FullInbox } from "./full_service.ts";
import { inEachForm } from "./in_each_form.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import { readTime } from "./rows.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

/** What a handler can do, by how the table names it. */
const OUTCOMES: Readonly<Record<string, () => Outcome | void>> = {
  "ack()": ack,
  "ack(), processedAt": ack,
  'drop("why")': () => drop("why"),
  'drop("why"), processedAt': () => drop("why"),
  "retry()": retry,
  'retryAfter(60 s, "why")': () => retryAfter({ minutes: 1 }, "why"),
  'deadLetter("why")': () => deadLetter("why"),
  'throw new Error("why")': () => {
    throw new Error("why");
  },
  "the same, attempts spent": () => {
    throw new Error("why");
  },
};

/** What is expected of each, the same in every form and on every database. */
const EXPECTED = `
outcome                  | before             | after
ack()                    | jobs 1 due 1 s     | (gone)
ack(), processedAt       | jobs 1 due 1 s     | jobs {counted} due 1 s, done at 2 s
drop("why")              | jobs 1 due 1 s     | (gone)
drop("why"), processedAt | jobs 1 due 1 s     | jobs {counted} due 1 s, done at 2 s, error why
retry()                  | jobs 1 due 1 s     | jobs 2 due 1 s
retryAfter(60 s, "why")  | jobs 1 due 1 s     | jobs 2 due 62 s, error why
deadLetter("why")        | jobs 1 due 1 s     | dead 1 due 2 s, error why
throw new Error("why")   | jobs 1 due 1 s     | jobs 2 due within 3 s, error why
the same, attempts spent | jobs 1 due 1 s     | dead 1 due 2 s, error why
`.trim();

async function show(database: TestDatabase, form: Form): Promise<void> {
  const lines = ["outcome                  | before             | after"];
  for (const [name, handle] of Object.entries(OUTCOMES)) {
    const table = (name.includes("processedAt") ? FULL_MARKED_TABLES : FULL_TABLES)[form];
    const { before, after } = await tryOutcome(database, table, name, handle);
    lines.push(`${name.padEnd(24)} | ${before.padEnd(18)} | ${after}`);
  }
  console.log(`${form}: queue, attempt and times of a row, before its claim and after its settle`);
  console.log(lines.join("\n"));
  // A lock of the row alone counts an attempt only when another is asked for.
  const counted = form === "row lock" ? "1" : "2";
  assert.equal(lines.join("\n"), EXPECTED.replaceAll("{counted}", counted));
}

async function tryOutcome(
  database: TestDatabase,
  table: FullInbox,
  name: string,
  handle: () => Outcome | void,
): Promise<{ readonly before: string; readonly after: string }> {
  const jobs = subscribe(table, "jobs", async ({ name }, { signal }) => {
    if (name === "a") {
      await sleep(1_000);
      return handle();
    }
    while (!signal.aborted) await sleep(1_000);
  }, {
    pollInterval: 10,
    deadLetter: "dead",
    backoff: { first: 1_000 },
    ...(name.includes("spent") ? { maxAttempts: 1 } : {}),
  });
  const app = rolesService(database.connect(), table, jobs);
  await using test = await TestApp.start(app, { now: Date.UTC(2030, 0) });
  const queue = queueOf(table, "jobs");
  const { id } = await test.publish(queue, { name: "a" }, { delay: 1_000, priority: 5 });
  // Keeps the one worker from claiming the row again before it has been looked at.
  await test.publish(queue, { name: "blocker" }, { delay: 1_500 });
  const before = describe(await find(test, id));
  await test.advance({ milliseconds: 2_100 });
  const after = describe(await find(test, id), name.startsWith("throw"));
  await test.stop();
  await dropTable(database, table);
  return { before, after };
}

async function dropTable(database: TestDatabase, table: FullInbox): Promise<void> {
  await using test = await TestApp.start(rolesService(database.connect(), table));
  await test.query("DROP TABLE jobs");
}

async function find(test: TestApp, id: bigint | string) {
  return (await test.query("SELECT * FROM jobs")).find((row) => String(row.id) === String(id));
}

/** @param isRandom whether the row is due after a backoff of at most a second */
function describe(row: Awaited<ReturnType<typeof find>>, isRandom = false): string {
  if (row === undefined) return "(gone)";
  const at = (time: unknown): number => (readTime(time as string) - Date.UTC(2030, 0)) / 1000;
  const due = at(row.due);
  const isWithin = isRandom && due >= 2 && due <= 3.1;
  const parts = [
    `${row.queue} ${row.attempt} due ${isWithin ? "within 3 s" : `${Math.round(due)} s`}`,
    ...(row.done === null || row.done === undefined
      ? []
      : [`done at ${Math.round(at(row.done))} s`]),
    ...(row.last_error === null ? [] : [`error ${row.last_error}`]),
  ];
  return parts.join(", ");
}

/** What each outcome does to a row, printed as a table and the same everywhere. */
export const outcomeTableTests: readonly ConformanceTest[] = inEachForm([{
  name: "what each outcome does to the columns of a row",
  run: show,
}]);
