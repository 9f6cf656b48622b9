import { removePath } from "./remove_path.ts";
import { runCommand } from "./run_command.ts";

/** Lines of postmaster.pid. */
const PID = 0;
const SHARED_MEMORY = 6;
const STATUS = 7;

/** Whether the server with this number takes connections. */
export async function postgresReady(data: string, pid: number): Promise<boolean> {
  const lines = await pidFile(data);
  return Number(lines[PID]) === pid && lines[STATUS]?.trim() === "ready";
}

/** Removes what a Postgres leaves behind that did not end in good order. */
export async function cleanPostgres(data: string, socket: string): Promise<void> {
  await freeSharedMemory(data);
  await removePath(`${data}/postmaster.pid`);
  await removePath(socket);
  await removePath(`${socket}.lock`);
}

/** Gives back the memory that outlives a killed Postgres, the one of initdb too. */
export async function freeSharedMemory(data: string): Promise<void> {
  const memory = (await pidFile(data))[SHARED_MEMORY]?.trim().split(/\s+/)[1];
  if (memory === undefined) return;
  try {
    await runCommand("Freeing shared memory", { command: ["ipcrm", "-m", memory] });
  } catch {
    // Freed already, which is as good.
  }
}

async function pidFile(data: string): Promise<readonly string[]> {
  try {
    return (await Deno.readTextFile(`${data}/postmaster.pid`)).split("\n");
  } catch {
    return [];
  }
}
