/** Sends a signal to a process, or to a group when negative; one that is gone already is fine. */
export function signalProcess(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound ||
    error instanceof TypeError && error.message.includes("ESRCH");
}
