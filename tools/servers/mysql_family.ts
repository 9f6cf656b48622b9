import type { Launch } from "./launch.ts";
import { exists } from "./exists.ts";
import { mysqlGreeting } from "./mysql_greeting.ts";
import { removePath } from "./remove_path.ts";
import type { StartOptions, TestServer } from "./server.ts";
import { throwawayServer } from "./throwaway_server.ts";

/**
 * Fast, and still safe against the end of the process: with 2 every commit is handed to the system
 * at once; with 0 a killed server would lose those of the last second.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  "bind-address": "127.0.0.1",
  "skip-networking": "OFF",
  "skip-name-resolve": "ON",
  "innodb-flush-log-at-trx-commit": "2",
  "sync-binlog": "0",
  // The number of such requests is limited for the whole machine.
  "innodb-use-native-aio": "OFF",
  "max-connections": "300",
};

/** Run at each start, before the first connection. */
const INIT = `
CREATE USER IF NOT EXISTS root@'127.0.0.1';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS test;
`;

/** What differs between MySQL and MariaDB. */
export interface MysqlPlan extends StartOptions {
  readonly name: string;
  /** The folder of this server as the caller sees it. */
  readonly folder: string;
  /** The same as the server sees it. */
  readonly ownFolder: string;
  readonly resources: AsyncDisposable;
  readonly launch: Launch;
  readonly defaults: Readonly<Record<string, string>>;
}

/** Starts a server whose data folder, `data`, is there already; root needs no password. */
export async function startMysqlFamily(plan: MysqlPlan): Promise<TestServer> {
  const { folder, ownFolder, launch } = plan;
  await Deno.writeTextFile(`${folder}/init.sql`, INIT);
  const settings = { ...SETTINGS, ...plan.defaults, ...plan.settings };
  const files = [
    `--datadir=${ownFolder}/data`,
    `--tmpdir=${ownFolder}`,
    `--socket=${ownFolder}/socket`,
    `--pid-file=${ownFolder}/pid`,
    `--init-file=${ownFolder}/init.sql`,
  ];
  const set = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
  return throwawayServer({
    name: plan.name,
    folder,
    resources: plan.resources,
    stopSignals: { fast: "SIGTERM", immediate: "SIGKILL" },
    url: (port) => `mysql://root@127.0.0.1:${port}/test`,
    launch: (port) => ({
      ...launch,
      command: [...launch.command, "--no-defaults", ...files, `--port=${port}`, ...set],
    }),
    // The socket is opened after the port: with it, the port is known to be this server's.
    probe: async (port) => await exists(`${folder}/socket`) ? await mysqlGreeting(port) : undefined,
    clean: async () => {
      for (const file of ["socket", "socket.lock", "pid"]) await removePath(`${folder}/${file}`);
    },
  }, plan.signal);
}
