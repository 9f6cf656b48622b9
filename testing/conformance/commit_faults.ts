import assert from "node:assert/strict";
import { connectTo } from "./connect_to.ts";
import { type Fault, FaultyNetwork } from "./faulty_network.ts";
import type { Form } from "./holdfast.ts";
import { inEachForm } from "./in_each_form.ts";
import { handleAll, namesOf } from "./note_rounds.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

const BEFORE_RETURN = 5;
const RACES = 40;
/** Where a connection can break: at each thing that an ack sends, and beyond, and at COMMIT. */
const FAULTS: readonly Fault[] = [
  ...Array.from({ length: 7 }, (_, skips) => skips).flatMap((skips) => [
    { skips, arrives: false },
    { skips, arrives: true },
  ]),
  { sends: /COMMIT/i, arrives: false },
  { sends: /COMMIT/i, arrives: true },
];

/** An ack of a transactional handler commits both or neither, whenever its connection is cut. */
export const commitFaultTests: readonly ConformanceTest[] = inEachForm([
  {
    name: "a connection cut between a transactional handler's write and its ack undoes both",
    needs: "a server",
    run: cutBeforeAck,
  },
  {
    name: "connections cut while a transactional ack commits leave both or neither, and one note",
    needs: "a server",
    run: cutWhileCommitting,
  },
  {
    name:
      "a transactional ack is carried out once, whichever of its statements or answers gets lost",
    needs: "a server",
    run: loseEach,
  },
]);

async function cutBeforeAck(database: TestDatabase, form: Form): Promise<void> {
  const seen: string[] = [];
  const report = await handleAll(database, form, BEFORE_RETURN, async (name) => {
    const isFirst = !seen.includes(name);
    seen.push(name);
    if (isFirst) await database.cut!();
  });
  // Each was handled once in vain.
  const twice = namesOf(BEFORE_RETURN).flatMap((name) => [name, name]);
  assert.deepEqual(seen, twice);
  assert.deepEqual(report.map(({ runs, settled }) => ({ runs, settled })), [
    ...Array(BEFORE_RETURN).fill({ runs: 2, settled: [false, true] }),
  ]);
}

/**
 * The handler returns while the cut is under way, a little earlier or later each time: later where the
 * last commit was done before it was cut, earlier where it was cut before it was done.
 */
async function cutWhileCommitting(database: TestDatabase, form: Form): Promise<void> {
  let lead = await timeOfCut(database);
  let step = lead / 2;
  let cutting: Promise<void> | undefined;
  const report = await handleAll(database, form, RACES, async (_, run) => {
    if (run > 1) return;
    cutting = database.cut!();
    await sleep(lead + Math.random());
  }, async ({ runs }) => {
    await cutting;
    lead = Math.max(0, lead + (runs === 1 ? step : -step));
    step = Math.max(0.5, step / 2);
  });
  const [undone, lost] = [
    report.filter(({ runs }) => runs > 1),
    report.filter(({ runs, settled }) => runs === 1 && !settled[0]),
  ];
  console.log(
    `${RACES} cuts: ${undone.length} before the commit, ${lost.length} in it, its answer lost, ` +
      `${RACES - undone.length - lost.length} after it`,
  );
  assert(undone.length > 0 && undone.length < RACES, "every cut fell on the same side");
}

async function loseEach(database: TestDatabase, form: Form): Promise<void> {
  await using network = new FaultyNetwork(database.address!);
  const faulty = { ...database, connect: () => connectTo(network.address) };
  const met: boolean[] = [];
  const report = await handleAll(faulty, form, FAULTS.length, (name, run) => {
    if (run === 1) network.cutAt(FAULTS[Number(name.slice(1))]);
    return Promise.resolve();
  }, () => {
    met.push(network.fault === undefined);
    network.cutAt(undefined);
    return Promise.resolve();
  });
  const runs = report.map(({ runs }) => runs);
  console.log(`The handler ran ${runs.join(", ")} times`);
  assert.deepEqual(met.slice(-2), [true, true], "No COMMIT was sent");
  assert.deepEqual(runs.slice(-2), [2, 1], "COMMIT is lost, then its answer");
  if (form === "lease") {
    assert.deepEqual(report.at(-1)?.settled, [true], "It looks whether it is so");
  }
  assert.deepEqual(runs.slice(0, 2), [2, 2], "The first statement is lost, then its answer");
  assert.equal(runs.at(-3), 1, "An ack sends more than was tried");
}

/** How long a cut takes, at its median. */
async function timeOfCut(database: TestDatabase): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < 3; n++) {
    const start = performance.now();
    await database.cut!();
    times.push(performance.now() - start);
  }
  return times.toSorted((a, b) => a - b)[1]!;
}
