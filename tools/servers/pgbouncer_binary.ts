import { findBinary } from "./binary.ts";
import { MissingServerError } from "./missing_server_error.ts";
import { runCommand } from "./run_command.ts";

/** The program, and which version of it is installed. */
export interface PgBouncerBinary {
  readonly binary: string;
  readonly version: string;
}

/** Finds the PgBouncer that is installed. */
export async function pgBouncerBinary(): Promise<PgBouncerBinary> {
  const binary = await findBinary("pgbouncer");
  if (binary === undefined) {
    throw new MissingServerError("Looking for pgbouncer found none: apt-get install pgbouncer");
  }
  const text = await runCommand("Asking PgBouncer for its version", {
    command: [binary, "--version"],
  });
  return { binary, version: text.match(/[0-9][0-9.]*/)?.[0] ?? "unknown" };
}
