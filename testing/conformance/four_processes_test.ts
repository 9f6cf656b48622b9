import assert from "node:assert/strict";
import { CrashCrew } from "./crash_crew.ts";
import { DeliveryHistory } from "./delivery_history.ts";
import { DeliveryLedger } from "./delivery_ledger.ts";
import { Broker } from "./holdfast.ts";
import { countedJobs } from "./lease_service.ts";
import { RowWitness } from "./row_witness.ts";
import { sleep } from "./sleep.ts";
import { sqlite } from "../../src/sqlite/mod.ts";

const ROWS = 2_000;
const PROCESSES = 4;
const BETWEEN_KILLS = 1_000;
const TIME_LIMIT = 60_000;

Deno.test("four processes, one killed every second: every row is handled, every repeat explained", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await run(`${folder}/jobs.db`, `${folder}/ledgers`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

async function run(database: string, ledgers: string): Promise<void> {
  const ids = await publish(database);
  using witness = new RowWitness(database);
  await Deno.mkdir(ledgers);
  await using crew = await CrashCrew.start(PROCESSES, database, ledgers);
  const start = performance.now();
  await killUntilHandled(crew, witness);
  const seconds = (performance.now() - start) / 1000;
  const exitCodes = await crew.stop();

  const lines = await DeliveryLedger.readAll(ledgers);
  const history = new DeliveryHistory(witness.claims(), lines, crew.processes);
  const repeats = history.repeats();
  const unexplained = repeats.filter(({ killed }) => killed === undefined);
  const kills = crew.processes.filter(({ killedAt }) => killedAt !== undefined).length;
  console.log(
    `${ROWS} rows, ${PROCESSES} processes, ${seconds.toFixed(1)} s: ${kills} kills, ` +
      `${repeats.length} repeated deliveries, ${unexplained.length} of them not explained by a kill`,
  );

  assert.deepEqual(exitCodes, Array(PROCESSES).fill(0));
  assert.equal(witness.rowsLeft(), 0);
  assert.deepEqual(witness.acked().toSorted(), ids.toSorted());
  assert.deepEqual(history.ackedTwice(), []);
  assert.deepEqual(history.strangers(), []);
  assert.deepEqual(unexplained.map(({ text }) => text), []);
  assert(kills >= 4, `${kills} processes were killed, not 4 or more; make handlers slower`);
}

async function publish(database: string): Promise<readonly string[]> {
  const queue = countedJobs.queue("jobs");
  await using broker = await new Broker(sqlite(database)).createTables(countedJobs).connect();
  const names = Array.from({ length: ROWS }, (_, index) => ({ name: String(index) }));
  const published = await Promise.all(names.map((job) => broker.publish(queue, job)));
  return published.map(({ id }) => String(id));
}

async function killUntilHandled(crew: CrashCrew, witness: RowWitness): Promise<void> {
  const start = performance.now();
  let nextKill = start + BETWEEN_KILLS;
  while (witness.rowsLeft() > 0) {
    await sleep(50);
    const now = performance.now();
    assert(now < start + TIME_LIMIT, `${witness.rowsLeft()} rows are left after a minute`);
    if (now < nextKill) continue;
    await crew.killOldest();
    nextKill += BETWEEN_KILLS;
  }
}
