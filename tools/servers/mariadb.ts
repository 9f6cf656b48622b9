import { serviceAccount } from "./account.ts";
import { findBinary } from "./binary.ts";
import { MissingServerError } from "./missing_server_error.ts";
import { startMysqlFamily } from "./mysql_family.ts";
import { runCommand } from "./run_command.ts";
import type { StartOptions, TestServer } from "./server.ts";
import { throwawayFolder } from "./throwaway_folder.ts";

/** Starts a MariaDB with an empty database, `test`. */
export async function startMariadb(options: StartOptions = {}): Promise<TestServer> {
  const server = await binary("mariadbd");
  const install = await binary("mariadb-install-db");
  const account = await serviceAccount("mysql");
  await using building = new AsyncDisposableStack();
  const folder = building.use(await throwawayFolder("mariadb", account)).path;
  await runCommand("Creating a MariaDB", {
    command: [
      install,
      "--no-defaults",
      `--datadir=${folder}/data`,
      "--auth-root-authentication-method=normal",
      "--skip-test-db",
    ],
    account,
  }, options.signal);
  return startMysqlFamily({
    ...options,
    name: "MariaDB",
    folder,
    ownFolder: folder,
    resources: building.move(),
    launch: { command: [server], account },
    defaults: { "skip-log-bin": "ON" },
  });
}

async function binary(name: string): Promise<string> {
  const file = await findBinary(name);
  if (file !== undefined) return file;
  throw new MissingServerError(`Looking for ${name} found none: apt-get install mariadb-server`);
}
