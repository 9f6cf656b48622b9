/** One process of a crew. Times in milliseconds since 1970. */
export interface CrewProcess {
  readonly pid: number;
  readonly startedAt: number;
  /** When it was still alive, and about to be killed; `undefined` unless it was killed. */
  readonly doomedAt: number | undefined;
  /** When it was certainly dead; `undefined` unless it was killed. */
  readonly killedAt: number | undefined;
}

/** What the processes of a crew run. */
export interface CrewProgram {
  /** A worker beside this file; its arguments are the database, its ledger and those given here. */
  readonly worker: string;
  readonly args?: readonly string[];
}

/** Processes that work on one database, each with a ledger of its own. */
export class CrashCrew implements AsyncDisposable {
  readonly #database: string;
  readonly #ledgers: string;
  readonly #program: CrewProgram;
  readonly #all: Member[] = [];

  /** Starts them; all of them run when the promise resolves. */
  static async start(
    size: number,
    database: string,
    ledgers: string,
    program: CrewProgram = { worker: "crash_worker.ts" },
  ): Promise<CrashCrew> {
    const crew = new CrashCrew(database, ledgers, program);
    for (let n = 0; n < size; n++) crew.#add();
    await Promise.all(crew.#living.map(({ running }) => running));
    return crew;
  }

  private constructor(database: string, ledgers: string, program: CrewProgram) {
    this.#database = database;
    this.#ledgers = ledgers;
    this.#program = program;
  }

  /** Every process there has been. */
  get processes(): readonly CrewProcess[] {
    return this.#all.map(({ child: { pid }, startedAt, doomedAt, killedAt }) => ({
      pid,
      startedAt,
      doomedAt,
      killedAt,
    }));
  }

  /** Kills the process that has run longest, and starts another in its place. */
  async killOldest(): Promise<void> {
    await this.#replace(this.#living[0]!);
  }

  /** Kills any of the processes that run, and starts another in its place. */
  async killAny(): Promise<void> {
    const running = this.#living.filter(({ hasBegun }) => hasBegun);
    const any = running[Math.floor(Math.random() * running.length)];
    if (any !== undefined) await this.#replace(any);
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

  async #replace(member: Member): Promise<void> {
    const killed = kill(member);
    this.#add();
    await killed;
  }

  #add(): void {
    const startedAt = Date.now();
    const { worker, args = [] } = this.#program;
    const ledger = `${this.#ledgers}/${this.#all.length}.jsonl`;
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", `${HERE}/${worker}`, this.#database, ledger, ...args],
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const reader = child.stdout.getReader();
    const running = reader.read().finally(() => {
      member.hasBegun = true;
      reader.releaseLock();
    });
    const member: Member = {
      child,
      running,
      startedAt,
      doomedAt: undefined,
      killedAt: undefined,
      hasBegun: false,
      ended: false,
    };
    this.#all.push(member);
  }
}

interface Member {
  readonly child: Deno.ChildProcess;
  /** Settles when the worker has printed its one line, or has ended. */
  readonly running: Promise<unknown>;
  readonly startedAt: number;
  doomedAt: number | undefined;
  killedAt: number | undefined;
  hasBegun: boolean;
  ended: boolean;
}

async function kill(member: Member): Promise<void> {
  const doomedAt = Date.now();
  member.child.kill("SIGKILL");
  const { signal } = await end(member);
  if (signal !== "SIGKILL") return;
  member.doomedAt = doomedAt;
  member.killedAt = Date.now();
}

async function end(member: Member): Promise<Deno.CommandStatus> {
  const status = await member.child.status;
  member.ended = true;
  await member.running;
  await member.child.stdout.cancel();
  return status;
}

const HERE = new URL(".", import.meta.url).href.replace(/\/$/, "");
