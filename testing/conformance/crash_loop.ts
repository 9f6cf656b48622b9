import assert from "node:assert/strict";
import { Broker, type Form } from "./holdfast.ts";
import { FULL_TABLES } from "./full_service.ts";
import { inEachForm } from "./in_each_form.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";
import { Watcher } from "./watcher.ts";

/** As the worker subscribes. */
const MAX_ATTEMPTS = 3;
const TIME_LIMIT = 30_000;

/** A message that nobody survives comes to an end, where a claim spends the attempt. */
export const crashLoopTests: readonly ConformanceTest[] = inEachForm([
  {
    name:
      "a message whose handler kills its process every time is dead-lettered after maxAttempts crashes",
    needs: "processes",
    forms: ["lease", "advisory lock"],
    run: crashUntilDead,
  },
]);

async function crashUntilDead(database: TestDatabase, form: Form): Promise<void> {
  const table = FULL_TABLES[form];
  await using broker = await new Broker(database.connect()).createTables(table).connect();
  for (const name of ["poison", "harmless"]) await broker.publish(table.queue("jobs"), { name });
  await using watcher = await Watcher.open(database.connect());
  const start = performance.now();
  const begun: string[] = [];
  let died = 0;
  for (;;) {
    assert(died <= MAX_ATTEMPTS, "The poison goes on killing");
    const { code, signal, lines } = await runWorker(database.address!, form, watcher);
    begun.push(...lines);
    if (signal !== "SIGKILL") {
      assert.equal(code, 0);
      break;
    }
    died++;
  }
  const seconds = (performance.now() - start) / 1000;
  console.log(`${died} processes died in ${seconds.toFixed(1)} s: ${begun.join(", ")}`);
  assert.equal(died, MAX_ATTEMPTS);
  assert.deepEqual(begun.filter((line) => line.startsWith("poison")), [
    "poison 1",
    "poison 2",
    "poison 3",
  ]);
  assert.deepEqual(begun.filter((line) => line.startsWith("harmless")), ["harmless 1"]);
  const [row, ...others] = await watcher.rows(
    "SELECT queue, attempt, payload, last_error FROM jobs",
  );
  assert.deepEqual(others, []);
  assert.equal(row?.queue, "dead");
  assert.equal(Number(row?.attempt), 1);
  assert.match(String(row?.payload), /poison/);
  assert.match(String(row?.last_error), /never came to an end/);
}

/** How a worker process ended, and what it had printed. */
interface Ended extends Deno.CommandStatus {
  readonly lines: readonly string[];
}

/** Runs one worker process until it dies, or until there is nothing left to do for it. */
async function runWorker(address: string, form: Form, watcher: Watcher): Promise<Ended> {
  await using worker = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", WORKER, address, form],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const printed = new Response(worker.stdout).text();
  let isOver = false;
  const ended = worker.status.finally(() => isOver = true);
  await stopWhenDone(worker, watcher, () => isOver);
  const lines = (await printed).split("\n").filter((line) => line !== "");
  return { ...await ended, lines };
}

async function stopWhenDone(
  worker: Deno.ChildProcess,
  watcher: Watcher,
  isOver: () => boolean,
): Promise<void> {
  const end = Date.now() + TIME_LIMIT;
  while (!isOver()) {
    if (await watcher.count("SELECT count(*) AS count FROM jobs WHERE queue = 'jobs'") === 0) {
      worker.kill("SIGTERM");
      return;
    }
    assert(Date.now() < end, `The poison is neither dead nor deadly after ${TIME_LIMIT} ms`);
    await sleep(50);
  }
}

const WORKER = new URL("./crash_loop_worker.ts", import.meta.url).href;
