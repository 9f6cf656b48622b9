import assert from "node:assert/strict";
import type { TestServer } from "../../tools/servers/server.ts";
import { testServer } from "../../tools/servers/test_server.ts";
import { type Driver, type Form, TestApp } from "./holdfast.ts";
import { FORMS } from "./full_service.ts";
import { CREATE_NOTES, noteService, untilNoted } from "./note_service.ts";
import { sleep } from "./sleep.ts";
import type { TestDatabase } from "./test_database.ts";
import { untilPublished } from "./until_published.ts";
import { Watcher } from "./watcher.ts";

/** How long after its handler's return the server is killed, in milliseconds; `"before"` it first. */
const KILLS = ["before", 0, 1, 3] as const;

/** Registers, for each form, that a server's crash between write and commit leaves both or neither. */
export function testCommitCrash(
  title: string,
  start: () => Promise<TestServer>,
  connect: (url: string) => Driver,
  write: TestDatabase["write"],
): void {
  for (const form of FORMS) {
    testServer(
      `${title}, ${form}: a server killed before or in a transactional ack leaves both or neither`,
      async () => {
        await using server = await start();
        await crashInAcks(server, form, connect, write);
      },
    );
  }
}

async function crashInAcks(
  server: TestServer,
  form: Form,
  connect: (url: string) => Driver,
  write: TestDatabase["write"],
): Promise<void> {
  const runs: number[] = KILLS.map(() => 0);
  let killing = Promise.resolve();
  const { app, queue } = noteService(connect(server.url), form, {
    write,
    lease: 3,
    then: async ({ name }) => {
      const round = Number(name);
      if (++runs[round]! > 1) return;
      const delay = KILLS[round]!;
      killing = delay === "before" ? server.kill() : sleep(delay).then(() => server.kill());
      if (delay === "before") await killing;
    },
  });
  await using watcher = await Watcher.open(connect(server.url));
  await watcher.rows(CREATE_NOTES);
  await using test = await TestApp.startLive(app);
  const names = KILLS.map((_, round) => `${round}`);
  for (const [round, name] of names.entries()) {
    await untilPublished(() => test.publish(queue, { name }, { uniqueKey: name }));
    while (runs[round] === 0) await sleep(5);
    await killing;
    await server.restart();
    await untilNoted(watcher, name);
    await test.settled();
  }
  const notes = await watcher.rows("SELECT note FROM notes ORDER BY note");
  assert.deepEqual(notes.map(({ note }) => note), names);
  assert.deepEqual(await watcher.rows("SELECT id FROM jobs"), []);
  assert.equal(runs[0], 2, "the server was killed before the handler returned");
  console.log(`${KILLS.length} crashes; the handler ran ${runs.join(", ")} times`);
}
