import { freePort } from "./free_port.ts";
import type { Launch } from "./launch.ts";
import { pause } from "./pause.ts";
import { lastLines } from "./run_command.ts";
import type { StopMode, TestServer } from "./server.ts";
import { ServerProcess } from "./server_process.ts";

const PORT_ATTEMPTS = 5;
const START_LIMIT = 60_000;

/** What differs between the kinds of servers. */
export interface ServerPlan {
  /** As it is called in messages. */
  readonly name: string;
  /** Its temporary folder: what it prints goes to `log` therein. */
  readonly folder: string;
  readonly stopSignals: Readonly<Record<StopMode, Deno.Signal>>;
  /** What to let go of once the server is gone, its folder above all. */
  readonly resources: AsyncDisposable;
  url(port: number): string;
  launch(port: number): Launch;
  /** The version of the server once it takes connections, and only if it is this very process. */
  probe(port: number, pid: number): Promise<string | undefined>;
  /** Removes what a killed server leaves behind: locks, sockets, shared memory. */
  clean(port: number): Promise<void>;
}

/** Starts a server as planned, on a free port. */
export async function throwawayServer(
  plan: ServerPlan,
  signal?: AbortSignal,
): Promise<TestServer> {
  for (let attempt = 1;; attempt++) {
    const server = new ThrowawayServer(plan, freePort());
    try {
      await server.start(signal);
      return server;
    } catch (error) {
      // Somebody else may have taken the port since it was looked at.
      if (attempt < PORT_ATTEMPTS && await server.portTaken()) continue;
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }
}

class ThrowawayServer implements TestServer {
  readonly #plan: ServerPlan;
  readonly #port: number;
  #process: ServerProcess | undefined;
  #version = "";
  #disposed = false;

  constructor(plan: ServerPlan, port: number) {
    this.#plan = plan;
    this.#port = port;
  }

  get url(): string {
    return this.#plan.url(this.#port);
  }

  get version(): string {
    return this.#version;
  }

  get pid(): number {
    if (this.#process !== undefined) return this.#process.pid;
    throw new Error(`Asking for the process of ${this.#plan.name} found none: restart it`);
  }

  get folder(): string {
    return this.#plan.folder;
  }

  async start(signal?: AbortSignal): Promise<void> {
    const { name } = this.#plan;
    if (this.#disposed) {
      throw new Error(`Starting ${name} at ${this.url} failed: it is disposed, start a new one`);
    }
    signal?.throwIfAborted();
    this.#process = await ServerProcess.start(this.#plan.launch(this.#port), this.#log);
    await this.#ready(this.#process, signal);
  }

  async kill(): Promise<void> {
    await this.#process?.kill();
    await this.#clean();
  }

  async stop(mode: StopMode = "fast"): Promise<void> {
    await this.#process?.stop(this.#plan.stopSignals[mode]);
    await this.#clean();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async portTaken(): Promise<boolean> {
    return /address already in use/i.test(await Deno.readTextFile(this.#log));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.kill();
    await this.#plan.resources[Symbol.asyncDispose]();
  }

  async #ready(process: ServerProcess, signal?: AbortSignal): Promise<void> {
    const deadline = Date.now() + START_LIMIT;
    while (process.running && Date.now() < deadline) {
      const version = await this.#plan.probe(this.#port, process.pid);
      if (version !== undefined && process.running) {
        this.#version = version;
        return;
      }
      if (signal?.aborted) await this.kill();
      signal?.throwIfAborted();
      await pause();
    }
    const outcome = process.running
      ? `did not answer within ${START_LIMIT / 1000} s`
      : `ended with ${await process.exited}`;
    await this.kill();
    throw new Error(
      `Starting ${this.#plan.name} at ${this.url} ${outcome}: ` +
        `correct what its log tells\n${lastLines(await Deno.readTextFile(this.#log))}`,
    );
  }

  get #log(): string {
    return `${this.#plan.folder}/log`;
  }

  async #clean(): Promise<void> {
    if (this.#process !== undefined) await this.#plan.clean(this.#port);
    this.#process = undefined;
  }
}
