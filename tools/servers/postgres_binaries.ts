import { findBinary } from "./binary.ts";
import { MissingServerError } from "./missing_server_error.ts";

/** Where Debian keeps the servers, in a folder for each version. */
const VERSIONS = "/usr/lib/postgresql";

/** The programs of one Postgres. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** Finds the newest Postgres that is installed. */
export async function postgresBinaries(): Promise<PostgresBinaries> {
  const folders = (await installedVersions()).map((version) => `${VERSIONS}/${version}/bin`);
  const initdb = await findBinary("initdb", folders);
  const postgres = await findBinary("postgres", folders);
  if (initdb !== undefined && postgres !== undefined) return { initdb, postgres };
  throw new MissingServerError(
    "Looking for initdb and postgres found none: apt-get install postgresql",
  );
}

async function installedVersions(): Promise<readonly number[]> {
  const versions: number[] = [];
  try {
    for await (const { name } of Deno.readDir(VERSIONS)) versions.push(Number(name));
  } catch {
    // Another system than Debian: PATH decides.
  }
  return versions.filter(Number.isFinite).sort((a, b) => b - a);
}
