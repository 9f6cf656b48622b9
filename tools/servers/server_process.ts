import { type Launch, launchCommand } from "./launch.ts";
import { pause } from "./pause.ts";
import { isRunning, processTree } from "./process_tree.ts";
import { signalProcess } from "./signal_process.ts";

/** One run of a server, from its start to its end. */
export class ServerProcess {
  readonly #child: Deno.ChildProcess;
  #ended = false;

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
    this.exited = child.status.then(({ code, signal }) => {
      this.#ended = true;
      return signal ?? `code ${code}`;
    });
  }

  /** Starts it in a group of its own, so that Ctrl-C reaches the tests only; appends to `log`. */
  static async start(launch: Launch, log: string): Promise<ServerProcess> {
    const command = await launchCommand(launch);
    const child = new Deno.Command("/bin/sh", {
      args: ["-c", 'exec "$@" >>"$0" 2>&1', log, ...command],
      env: { LC_ALL: "C" },
      stdin: "null",
      stdout: "null",
      stderr: "null",
      detached: true,
    }).spawn();
    return new ServerProcess(child);
  }

  /** How it ended. */
  readonly exited: Promise<string>;

  /** The process that was started. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Whether it has not ended yet. */
  get running(): boolean {
    return !this.#ended;
  }

  /** Asks it to end and waits until it did, by force when it takes longer than `patience`. */
  async stop(signal: Deno.Signal, patience = 30_000): Promise<void> {
    if (!this.running) return;
    signalProcess(this.pid, signal);
    const deadline = setTimeout(() => void this.kill(), patience);
    await this.exited;
    clearTimeout(deadline);
  }

  /** Ends it and all its children, which could go on without it for a while. */
  async kill(): Promise<void> {
    if (!this.running) return;
    // Halted, it neither starts another child nor lets the number of one be reused.
    signalProcess(this.pid, "SIGSTOP");
    const tree = await processTree(this.pid);
    for (const pid of tree) signalProcess(pid, "SIGKILL");
    await this.exited;
    for (const pid of tree.slice(1)) {
      while (await isRunning(pid)) await pause();
    }
  }
}
