import assert from "node:assert/strict";
import { CrashCrew } from "./crash_crew.ts";
import { DeliveryLedger } from "./delivery_ledger.ts";
import { BLOCKED, GROUPS, HEAD } from "./fifo_crash_groups.ts";
import { FifoHistory } from "./fifo_history.ts";
import { Broker } from "./holdfast.ts";
import { FIFO_TABLES, queueOf } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";
import { Watcher } from "./watcher.ts";

type FifoForm = keyof typeof FIFO_TABLES;

const PROCESSES = 5;
const ROWS = 1_000;
const PUBLISHED_AT_ONCE = 10;
const BETWEEN_KILLS = 900;
const LEAST_KILLS = 3;
const MOST_KILLS = 8;
const TIME_LIMIT = 30_000;

/** Groups stay in order whatever fails and whoever is killed. */
export const fifoCrashTests: readonly ConformanceTest[] = (["row lock", "lease"] as const)
  .map((form) => ({
    name: `FIFO, ${form}: groups stay in order while handlers fail and processes are killed`,
    needs: "a server",
    run: (database) => drainUnderFire(database, form),
  }));

async function drainUnderFire(database: TestDatabase, form: FifoForm): Promise<void> {
  const ids = await publish(database, form);
  await using watcher = await Watcher.open(database.connect());
  const ledgers = await Deno.makeTempDir();
  try {
    const start = performance.now();
    const program = { worker: "fifo_crash_worker.ts", args: [form] };
    await using crew = await CrashCrew.start(PROCESSES, database.address!, ledgers, program);
    await killUntilDrained(crew, watcher);
    const seconds = (performance.now() - start) / 1000;
    const exitCodes = await crew.stop();
    assert.deepEqual(exitCodes, Array(PROCESSES).fill(0));
    const lines = await DeliveryLedger.readAll(ledgers);
    const history = new FifoHistory(lines, crew.processes);
    const kills = killsOf(crew);
    const failures = lines.filter(({ event }) => event === "failed").length;
    console.log(
      `${ROWS} rows of ${GROUPS.length} groups, ${PROCESSES} processes, ${seconds.toFixed(1)} s: ` +
        `${kills} kills, ${history.runs} deliveries, ${failures} of them failed, ` +
        `${history.cutShort} cut short`,
    );
    assert.deepEqual(lines.filter(({ event }) => event === "early" || event === "lost"), []);
    assert.deepEqual(history.overlaps(), []);
    assert.deepEqual(history.tooEarly(), []);
    for (const group of GROUPS) assert.deepEqual(history.ackedOf(group), ids.get(group));
    assert.deepEqual(history.startedOf(BLOCKED), ids.get(BLOCKED)!.slice(0, 1));
    const left = await watcher.rows("SELECT id FROM jobs ORDER BY id");
    assert.deepEqual(left.map(({ id }) => BigInt(id as bigint)), ids.get(BLOCKED));
    assert(kills >= LEAST_KILLS, `${kills} processes were killed; make handlers slower`);
  } finally {
    await Deno.remove(ledgers, { recursive: true });
  }
}

/** The ids of each group, in order; groups take turns. */
async function publish(
  database: TestDatabase,
  form: FifoForm,
): Promise<ReadonlyMap<string, readonly bigint[]>> {
  const table = FIFO_TABLES[form];
  await using broker = await new Broker(database.connect()).createTables(table).connect();
  const ids = new Map([...GROUPS, BLOCKED].map((group) => [group, [] as bigint[]]));
  const publishTo = async (group: string, names: readonly string[]): Promise<void> => {
    const published = await broker.publishMany(queueOf(table, group), names.map(jobOf));
    ids.get(group)!.push(...published.map(({ id }) => BigInt(id)));
  };
  await publishTo(BLOCKED, [HEAD, "behind", "far behind"]);
  const names = Array.from({ length: PUBLISHED_AT_ONCE }, (_, n) => `${n}`);
  for (let n = 0; n < ROWS; n += PUBLISHED_AT_ONCE * GROUPS.length) {
    for (const group of GROUPS) await publishTo(group, names);
  }
  return ids;
}

function jobOf(name: string): { readonly name: string } {
  return { name };
}

async function killUntilDrained(crew: CrashCrew, watcher: Watcher): Promise<void> {
  const start = performance.now();
  let nextKill = start + BETWEEN_KILLS;
  for (;;) {
    const left = await watcher.count(
      `SELECT count(*) AS count FROM jobs WHERE queue <> '${BLOCKED}'`,
    );
    if (left === 0) return;
    const now = performance.now();
    assert(now < start + TIME_LIMIT, `${left} rows are left after ${TIME_LIMIT} ms`);
    if (now < nextKill || killsOf(crew) === MOST_KILLS) {
      await sleep(50);
      continue;
    }
    await crew.killAny();
    nextKill += BETWEEN_KILLS;
  }
}

function killsOf({ processes }: CrashCrew): number {
  return processes.filter(({ killedAt }) => killedAt !== undefined).length;
}
