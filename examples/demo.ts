/**
 * Publishes reports, kills a worker process in the middle of one, and shows that none is lost.
 *
 * @module
 */

import { Broker } from "@holdfast/inbox";
import { sqlite } from "@holdfast/inbox/sqlite";
import { DatabaseSync } from "node:sqlite";
import { type Report, reportJobs, reports, type WorkerEvent } from "./demo_worker.ts";

/** The worker that renders this page of this report is killed. */
const CRASH = { report: 4, page: 3 };
const BATCH: Report[] = Array.from(
  { length: 12 },
  (_, index) => ({ id: index + 1, title: `Report ${index + 1}`, pages: 5 }),
);
const TIME_LIMIT = 18_000;

/** Everything happens in this folder. */
async function demo(folder: string): Promise<string[]> {
  const database = `${folder}/reports.db`;
  const output = `${folder}/rendered`;
  await Deno.mkdir(output);
  await publish(database);
  const published = rowsIn(database);
  print(`published ${published} reports`);

  await using first = new Worker("worker-1", database, output);
  await using second = new Worker("worker-2", database, output);
  const workers = [first, second];
  const inTime = await untilRendered(output, published);
  for (const worker of workers) await worker.stop();

  const rendered = filesIn(output);
  const crashed = workers.filter(({ status }) => status?.signal === "SIGKILL");
  const redelivered = new Set(workers.flatMap((worker) => worker.startedAgain()));
  const lost = BATCH.filter(({ id }) => !rendered.includes(`report-${id}.txt`));
  console.log(
    `\npublished ${published}, rendered ${rendered.length}, crashed ${crashed.length}, ` +
      `redelivered ${redelivered.size}, lost ${lost.length}`,
  );

  const survivors = workers.filter((worker) => !crashed.includes(worker));
  return [
    inTime || `not all reports were rendered within ${TIME_LIMIT / 1000} s`,
    published === BATCH.length || `${BATCH.length} reports were published, not ${published}`,
    lost.length === 0 || `lost: ${lost.map(({ title }) => title).join(", ")}`,
    rowsIn(database) === 0 || `${rowsIn(database)} rows are left in the table`,
    crashed.length === 1 || `${crashed.length} workers were killed, not 1`,
    survivors.some((worker) => worker.startedAgain().includes(CRASH.report)) ||
    `report ${CRASH.report} did not come back in another process`,
    redelivered.size === 1 || `${redelivered.size} reports were delivered again, not 1`,
    survivors.every((worker) => worker.stoppedGracefully) || `a worker did not stop gracefully`,
  ].filter((problem) => problem !== true);
}

async function publish(database: string): Promise<void> {
  await using broker = await new Broker(sqlite(database)).createTables(reportJobs).connect();
  for (const report of BATCH) await broker.publish(reports, report);
}

/** A process of its own, whose events are printed and kept. */
class Worker implements AsyncDisposable {
  status: Deno.CommandStatus | undefined;
  readonly #name: string;
  readonly #process: Deno.ChildProcess;
  readonly #events: WorkerEvent[] = [];
  readonly #ended: Promise<void>;

  constructor(name: string, database: string, output: string) {
    const program = new URL("./demo_worker.ts", import.meta.url).href;
    this.#name = name;
    this.#process = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", program, database, output],
      stdin: "null",
      stdout: "piped",
    }).spawn();
    this.#ended = this.#follow();
  }

  get stoppedGracefully(): boolean {
    return this.status?.code === 0 && this.#events.some(({ event }) => event === "stopped");
  }

  /** The reports that it began as attempt 2 or later. */
  startedAgain(): number[] {
    return this.#events.flatMap((each) =>
      each.event === "started" && each.attempt > 1 ? [each.report] : []
    );
  }

  async stop(): Promise<void> {
    if (this.status === undefined) this.#process.kill("SIGTERM");
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.status === undefined) this.#process.kill("SIGKILL");
    await this.#ended;
  }

  async #follow(): Promise<void> {
    for await (const line of linesOf(this.#process.stdout)) this.#onEvent(JSON.parse(line));
    this.status = await this.#process.status;
    const { signal, code } = this.status;
    print(`${this.#name}  ended by ${signal ?? `itself, exit code ${code}`}`);
  }

  #onEvent(event: WorkerEvent): void {
    this.#events.push(event);
    if (event.event === "stopped") return print(`${this.#name}  stopped gracefully`);
    const { report, attempt } = event;
    const place = `${this.#name}  report ${String(report).padStart(2)}  attempt ${attempt}`;
    if (event.event !== "page") {
      const again = event.event === "started" && attempt > 1 ? " again" : "";
      return print(`${place}  ${event.event}${again}`);
    }
    if (report === CRASH.report && attempt === 1 && event.page === CRASH.page) {
      print(`${place}  killed while it renders page ${event.page}`);
      this.#process.kill("SIGKILL");
    }
  }
}

/** Whole lines only: a process that is killed may leave half of one. */
async function* linesOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}

async function untilRendered(output: string, count: number): Promise<boolean> {
  while (filesIn(output).length < count) {
    if (performance.now() > TIME_LIMIT) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}

function filesIn(output: string): string[] {
  return [...Deno.readDirSync(output)].map(({ name }) => name).filter((name) =>
    name.endsWith(".txt")
  );
}

function rowsIn(database: string): number {
  using connection = new DatabaseSync(database, { timeout: 5_000 });
  return Number(connection.prepare("SELECT count(*) AS count FROM report_jobs").get()!.count);
}

function print(event: string): void {
  console.log(`${(performance.now() / 1000).toFixed(2).padStart(6)} s  ${event}`);
}

const folder = await Deno.makeTempDir({ prefix: "holdfast-demo-" });
try {
  const problems = await demo(folder);
  for (const problem of problems) console.error(`Not as expected: ${problem}`);
  if (problems.length > 0) Deno.exitCode = 1;
} finally {
  await Deno.remove(folder, { recursive: true });
}
