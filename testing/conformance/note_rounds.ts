import assert from "node:assert/strict";
import { connectTo } from "./connect_to.ts";
import { type Form, TestApp } from "./holdfast.ts";
import { CREATE_NOTES, noteService, untilNoted } from "./note_service.ts";
import type { TestDatabase } from "./test_database.ts";
import { untilPublished } from "./until_published.ts";
import { Watcher } from "./watcher.ts";

/** How a message was handled. */
export interface Handled {
  /** How often the handler was run. */
  readonly runs: number;
  /** Whether each delivery was settled, as far as the app knows. */
  readonly settled: readonly boolean[];
}

/**
 * Publishes messages one after the other, each when the one before has been handled.
 *
 * @param then what happens in the handler after its write, by the message's name and the run's number
 * @throws if there are ever both a message's note and its row, or neither, or a note twice
 */
export async function handleAll(
  database: TestDatabase,
  form: Form,
  count: number,
  then: (name: string, run: number) => Promise<void>,
  afterEach: (handled: Handled) => Promise<void> = () => Promise.resolve(),
): Promise<readonly Handled[]> {
  const runs = new Map<string, number>();
  const { app, queue } = noteService(database.connect(), form, {
    write: database.write,
    lease: 5,
    then: async ({ name }) => {
      const run = (runs.get(name) ?? 0) + 1;
      runs.set(name, run);
      await then(name, run);
    },
  });
  await using watcher = await Watcher.open(connectTo(database.address!));
  await watcher.rows(CREATE_NOTES);
  await using test = await TestApp.startLive(app);
  const report: Handled[] = [];
  for (const name of namesOf(count)) {
    const before = test.deliveries.length;
    await untilPublished(() => test.publish(queue, { name }, { uniqueKey: name }));
    await untilNoted(watcher, name);
    await test.settled();
    const settled = test.deliveries.slice(before).map(({ settled }) => settled);
    const handled = { runs: runs.get(name)!, settled };
    report.push(handled);
    await afterEach(handled);
  }
  const notes = await watcher.rows("SELECT note FROM notes ORDER BY note");
  assert.deepEqual(notes.map(({ note }) => note), namesOf(count).toSorted());
  assert.deepEqual(await watcher.rows("SELECT id FROM jobs"), []);
  return report;
}

/** What that many messages are called. */
export function namesOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => `m${n}`);
}
