import { type Launch, launchCommand } from "./launch.ts";
import { signalProcess } from "./signal_process.ts";

const SHOWN_LINES = 20;

/** Runs a program to its end and returns what it printed; `task` names it in the error. */
export async function runCommand(
  task: string,
  launch: Launch,
  signal?: AbortSignal,
): Promise<string> {
  signal?.throwIfAborted();
  const [program = "", ...args] = await launchCommand(launch);
  const child = new Deno.Command(program, {
    args,
    env: { LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    detached: true,
  }).spawn();
  // A detached process leads a group, which its own children belong to.
  const abort = (): void => signalProcess(-child.pid, "SIGKILL");
  signal?.addEventListener("abort", abort);
  const { success, code, stdout, stderr } = await child.output();
  signal?.removeEventListener("abort", abort);
  signal?.throwIfAborted();
  const decoder = new TextDecoder();
  if (success) return decoder.decode(stdout);
  const output = lastLines(`${decoder.decode(stdout)}\n${decoder.decode(stderr)}`);
  throw new Error(`${task} ended with code ${code}: ${launch.command.join(" ")}\n${output}`);
}

/** The end of a program's output. */
export function lastLines(text: string): string {
  return text.trim().split("\n").slice(-SHOWN_LINES).join("\n");
}
