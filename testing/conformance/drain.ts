import assert from "node:assert/strict";
import { Broker, type Form } from "./holdfast.ts";
import { countedJobs, keyedJobs, lockedJobs } from "./lease_service.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

const PROCESSES = 10;
/** Four times as many have no other way to go wrong, and take four times as long. */
const ROWS = Number(Deno.env.get("HOLDFAST_TEST_ROWS") ?? 5_000);
const PUBLISHED_MEANWHILE = 1_000;

/** That many processes at once, and publishers beside them, come to no harm. */
export const drainTests: readonly ConformanceTest[] =
  (["lease", "row lock", "advisory lock"] as const).map((form) => ({
    name: `${form}: ${PROCESSES} processes of 10 workers drain ${ROWS} rows, each exactly once`,
    needs: "a server",
    run: (database) => drain(database, form),
  }));

const TABLES = { lease: countedJobs, "row lock": lockedJobs, "advisory lock": keyedJobs } as const;

async function drain(database: TestDatabase, form: Form): Promise<void> {
  const jobs = TABLES[form];
  await using broker = await new Broker(database.connect()).createTables(jobs).connect();
  const ids = await publish(broker, jobs.queue(), ROWS);
  const start = performance.now();
  const workers = Array.from({ length: PROCESSES }, () => startWorker(database.address!, form));
  ids.push(...await publish(broker, jobs.queue(), PUBLISHED_MEANWHILE));
  await untilEmpty(broker);
  const seconds = (performance.now() - start) / 1000;
  const reports = await Promise.all(workers.map(stopWorker));
  const acked = reports.flatMap(({ acked }) => acked);
  console.log(`${acked.length} rows in ${seconds.toFixed(1)} s, processes' start included`);
  assert.deepEqual(reports.flatMap(({ problems }) => problems), []);
  assert.deepEqual(acked.toSorted(), ids.toSorted());
}

async function publish(
  broker: Broker,
  queue: ReturnType<typeof TABLES[Form]["queue"]>,
  count: number,
): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const batch = Array.from({ length: 100 }, () => broker.publish(queue as never, JOB as never));
    ids.push(...(await Promise.all(batch)).map(({ id }) => String(id)));
  }
  return ids;
}

async function untilEmpty({ driver }: Broker): Promise<void> {
  const end = Date.now() + 300_000;
  for (;;) {
    const session = await driver.session();
    const { rows } = await session.query("SELECT id FROM jobs LIMIT 1");
    await session.release();
    if (rows.length === 0) return;
    assert(Date.now() < end, "rows are left after five minutes");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function startWorker(address: string, form: string): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", WORKER, address, form],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
}

async function stopWorker(
  worker: Deno.ChildProcess,
): Promise<{ readonly acked: string[]; readonly problems: string[] }> {
  let output = "";
  const decoder = new TextDecoder();
  let stopping = false;
  for await (const chunk of worker.stdout) {
    output += decoder.decode(chunk, { stream: true });
    if (!stopping && output.includes("running\n")) {
      stopping = true;
      worker.kill("SIGTERM");
    }
  }
  const { code } = await worker.status;
  assert.equal(code, 0);
  return JSON.parse(output.slice(output.indexOf("{")));
}

const JOB = { name: "drained" };
const WORKER = new URL("./drain_worker.ts", import.meta.url).href;
