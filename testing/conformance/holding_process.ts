import type { Form } from "./holdfast.ts";

/** How a process holds its row. */
export interface Hold {
  readonly form: Form;
  /** In seconds. */
  readonly lease?: number;
}

/** A process of its own that publishes a row of the suite's table, claims it, and never settles. */
export class HoldingProcess implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  #killed = false;

  /** Starts it on a database; it holds its row when the promise resolves. */
  static async start(address: string, hold: Hold): Promise<HoldingProcess> {
    const process = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", WORKER, address, JSON.stringify(hold)],
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const holder = new HoldingProcess(process);
    await holder.#untilHeld();
    return holder;
  }

  private constructor(process: Deno.ChildProcess) {
    this.#process = process;
  }

  /** Ends it as the kernel does: nothing of it runs any more. */
  async kill(): Promise<void> {
    if (this.#killed) return;
    this.#killed = true;
    this.#process.kill("SIGKILL");
    await this.#process.status;
    await this.#process.stdout.cancel();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }

  async #untilHeld(): Promise<void> {
    const reader = this.#process.stdout.getReader();
    try {
      const { done } = await reader.read(); // the worker prints once, when it holds its row
      if (done) throw new Error("The worker process has ended before it held a row");
    } finally {
      reader.releaseLock();
    }
  }
}

const WORKER = new URL("./holding_worker.ts", import.meta.url).href;
