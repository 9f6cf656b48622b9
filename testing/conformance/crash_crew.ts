/** One process of a crew. Times in milliseconds since 1970. */
export interface CrewProcess {
  readonly pid: number;
  readonly startedAt: number;
  /** When it was certainly dead; `undefined` unless it was killed. */
  readonly killedAt: number | undefined;
}

/** Processes that work on one SQLite file, each with a ledger of its own. */
export class CrashCrew implements AsyncDisposable {
  readonly #database: string;
  readonly #ledgers: string;
  readonly #all: Member[] = [];

  /** Starts them; all of them run when the promise resolves. */
  static async start(size: number, database: string, ledgers: string): Promise<CrashCrew> {
    const crew = new CrashCrew(database, ledgers);
    for (let n = 0; n < size; n++) crew.#add();
    await Promise.all(crew.#living.map(({ running }) => running));
    return crew;
  }

  private constructor(database: string, ledgers: string) {
    this.#database = database;
    this.#ledgers = ledgers;
  }

  /** Every process there has been. */
  get processes(): readonly CrewProcess[] {
    return this.#all.map(({ child: { pid }, startedAt, killedAt }) => ({
      pid,
      startedAt,
      killedAt,
    }));
  }

  /** Kills the process that has run longest, and starts another in its place. */
  async killOldest(): Promise<void> {
    const oldest = this.#living[0]!;
    const killed = kill(oldest);
    this.#add();
    await killed;
  }

  /** Stops all of them by SIGTERM. Returns their exit codes. */
  async stop(): Promise<readonly number[]> {
    const living = this.#living;
    await Promise.all(living.map(({ running }) => running));
    for (const { child } of living) child.kill("SIGTERM");
    const statuses = await Promise.all(living.map(end));
    return statuses.map(({ code }) => code);
  }

  /** Kills whichever have not ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#living.map(kill));
  }

  get #living(): readonly Member[] {
    return this.#all.filter(({ ended }) => !ended);
  }

  #add(): void {
    const startedAt = Date.now();
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", WORKER, this.#database, `${this.#ledgers}/${this.#all.length}.jsonl`],
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const reader = child.stdout.getReader();
    const running = reader.read().finally(() => reader.releaseLock());
    this.#all.push({ child, running, startedAt, killedAt: undefined, ended: false });
  }
}

interface Member {
  readonly child: Deno.ChildProcess;
  /** Settles when the worker has printed its one line, or has ended. */
  readonly running: Promise<unknown>;
  readonly startedAt: number;
  killedAt: number | undefined;
  ended: boolean;
}

async function kill(member: Member): Promise<void> {
  member.child.kill("SIGKILL");
  const { signal } = await end(member);
  if (signal === "SIGKILL") member.killedAt = Date.now();
}

async function end(member: Member): Promise<Deno.CommandStatus> {
  const status = await member.child.status;
  member.ended = true;
  await member.running;
  await member.child.stdout.cancel();
  return status;
}

const WORKER = new URL("./crash_worker.ts", import.meta.url).href;
