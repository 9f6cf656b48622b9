import type { DatabaseHost } from "./database_host.ts";
import { ageOfDatabase } from "./database_name.ts";

/**
 * Drops what killed test processes have left behind: test databases that are older than an hour and
 * that nobody is connected to. What cannot be dropped stays: it is no matter of the test that runs.
 */
export async function sweep(host: DatabaseHost): Promise<void> {
  const unused = await host.unused().catch(() => []);
  // Of another process that sweeps too, this one only sees that there is nothing left to drop.
  for (const name of unused.filter(isOld)) await host.drop(name).catch(() => {});
}

function isOld(name: string): boolean {
  return (ageOfDatabase(name) ?? 0) > MILLISECONDS_TO_KEEP;
}

const MILLISECONDS_TO_KEEP = 3_600_000;
