/** Another process that keeps writing to the same SQLite file, a few milliseconds each time. */
export class BusyNeighbour implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;

  /** Starts it; it has written once when the promise resolves. */
  static async start(path: string): Promise<BusyNeighbour> {
    const process = new Deno.Command(Deno.execPath(), {
      args: ["eval", PROGRAM, path],
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const reader = process.stdout.getReader();
    await reader.read();
    reader.releaseLock();
    return new BusyNeighbour(process);
  }

  private constructor(process: Deno.ChildProcess) {
    this.#process = process;
  }

  /** Ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.status;
    await this.#process.stdout.cancel();
  }
}

/** Holds the write lock about half of the time, for 2 to 6 ms. */
const PROGRAM = `
import { DatabaseSync } from "node:sqlite";
const database = new DatabaseSync(Deno.args[0], { timeout: 5000 });
database.exec("PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS neighbour (n INTEGER)");
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
console.log("writing");
for (;;) {
  database.exec("BEGIN IMMEDIATE; INSERT INTO neighbour VALUES (1)");
  await sleep(1 + Math.random() * 4);
  database.exec("COMMIT");
  await sleep(1 + Math.random() * 4);
}
`;
