import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";

interface Times {
  readonly handler: number;
  readonly request: number;
  readonly heeds: boolean;
}

/** How a service ended that was sent SIGTERM with a handler at work and a request in flight. */
interface Ending {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly code: number;
  readonly seconds: number;
  readonly lines: readonly string[];
  /** Attempt and expiry of the row, if it is there. */
  readonly row: { readonly attempt: number; readonly locked_until: number | null } | undefined;
}

Deno.test("a handler and a request that are shorter than the drain finish", async () => {
  const { status, code, seconds, lines, row } = await stopAtWork({
    handler: 500,
    request: 500,
    heeds: true,
  });
  assert.deepEqual([status, code, row], [200, 0, undefined]);
  assert(lines.includes("handled"));
  assert(seconds < 1, `${seconds} s`);
});

Deno.test("longer ones end at the drain's deadline: aborted, 503, and exit code 1", async () => {
  const { status, retryAfter, code, seconds, lines, row } = await stopAtWork({
    handler: 60_000,
    request: 60_000,
    heeds: true,
  });
  assert.deepEqual([status, retryAfter, code], [503, "5", 1]);
  assert(lines.includes("aborted"));
  assert.deepEqual(row, { attempt: 2, locked_until: null }, "back, its attempt spent");
  assert(seconds >= 1 && seconds < 2, `${seconds} s`);
});

Deno.test("a handler that ignores its signal does not keep the process, and its row is back", async () => {
  const { code, seconds, row } = await stopAtWork({ handler: 60_000, request: 0, heeds: false });
  assert.equal(code, 1);
  assert.deepEqual(row, { attempt: 2, locked_until: null });
  assert(seconds < 2.2, `${seconds} s, of a grace of 2 s`);
});

async function stopAtWork(times: Times): Promise<Ending> {
  const folder = await Deno.makeTempDir();
  const file = `${folder}/jobs.db`;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", PROGRAM, JSON.stringify({ ...times, file })],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const lines: string[] = [];
  const seen = (word: string) => lines.find((line) => line.startsWith(word));
  const reading = readLines(child, lines);
  await until(() => seen("listening") !== undefined && seen("handling") !== undefined);
  const answer = fetch(`http://127.0.0.1:${seen("listening")!.slice(10)}`);
  await until(() => seen("requested") !== undefined);
  const begin = performance.now();
  child.kill("SIGTERM");
  const response = await answer;
  await response.body?.cancel();
  const { code } = await child.status;
  const seconds = (performance.now() - begin) / 1000;
  await reading;
  const ending = {
    status: response.status,
    retryAfter: response.headers.get("retry-after"),
    code,
    seconds,
    lines,
    row: rowOf(file),
  };
  await Deno.remove(folder, { recursive: true });
  return ending;
}

async function readLines(child: Deno.ChildProcess, lines: string[]): Promise<void> {
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    lines.push(...text.split("\n").filter((line) => line !== ""));
  }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

function rowOf(file: string): Ending["row"] {
  using database = new DatabaseSync(file);
  const row = database.prepare("SELECT attempt, locked_until FROM jobs").get();
  return row === undefined ? undefined : { ...row } as unknown as Ending["row"];
}

const PROGRAM = new URL("../testing/programs/deadlines.ts", import.meta.url).href;
