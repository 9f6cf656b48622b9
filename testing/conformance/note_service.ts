import { ack, App, Broker, type Delivery, type Driver, type Form, type Queue } from "./holdfast.ts";
import { FULL_TABLES } from "./full_service.ts";
import type { Job } from "./lease_service.ts";
import { sleep } from "./sleep.ts";
import type { TestDatabase } from "./test_database.ts";
import type { Watcher } from "./watcher.ts";

/** A service whose transactional handler writes a note of each message. */
export interface NoteService {
  readonly app: App;
  readonly queue: Queue<Job>;
}

/** How the notes of a test are written. */
export interface NoteServiceOptions {
  /** How SQL is run in a handler's transaction. */
  readonly write: TestDatabase["write"];
  /** What happens in the handler after the write. */
  readonly then: (job: Job, delivery: Delivery) => Promise<void>;
  /** In seconds. */
  readonly lease: number;
}

/** The service in one of the forms. */
export function noteService(
  driver: Driver,
  form: Form,
  { write, then, lease }: NoteServiceOptions,
): NoteService {
  const table = FULL_TABLES[form];
  const queue = table.queue("jobs");
  const common = {
    transactional: true,
    pollInterval: 50,
    backoff: { first: 20, cap: 50 },
  } as const;
  const options = form === "lease" ? { ...common, lease: { seconds: lease } } : common;
  const jobs = queue.subscribe(options, async (job, delivery) => {
    await write(delivery, `INSERT INTO notes (note) VALUES ('${job.name}')`);
    await then(job, delivery);
    return ack();
  });
  const broker = new Broker(driver).createTables(table).include(jobs);
  return { app: new App({ name: "suite" }).withBroker(broker), queue };
}

/** The table of the notes, in which nothing keeps a note from being there twice. */
export const CREATE_NOTES = "CREATE TABLE notes (note VARCHAR(100))";

/** What an instant of the database holds. */
export interface NotesAndRows {
  /** Notes of a message. */
  readonly notes: number;
  /** Rows that wait, of any message. */
  readonly rows: number;
}

/** Reads both at one instant. */
export async function notesAndRows(watcher: Watcher, name: string): Promise<NotesAndRows> {
  const [found] = await watcher.rows(
    `SELECT (SELECT count(*) FROM notes WHERE note = '${name}') AS notes, ` +
      `(SELECT count(*) FROM jobs) AS waiting`,
  );
  return { notes: Number(found?.notes), rows: Number(found?.waiting) };
}

/**
 * Waits for the note of the only message there is.
 *
 * @throws if at any instant there are both its note and its row, or neither
 */
export async function untilNoted(watcher: Watcher, name: string): Promise<void> {
  const end = Date.now() + 30_000;
  for (;;) {
    const { notes, rows } = await notesAndRows(watcher, name);
    if (notes + rows !== 1) {
      throw new Error(`Message ${name} has ${notes} notes and ${rows} rows at the same time`);
    }
    if (notes === 1) return;
    if (Date.now() > end) throw new Error(`Message ${name} is not handled after 30 s`);
    await sleep(5);
  }
}
