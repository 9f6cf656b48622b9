import { accountNamed } from "./account.ts";
import { startMysqlFamily } from "./mysql_family.ts";
import { openMysqlRoot } from "./mysql_root.ts";
import { runCommand } from "./run_command.ts";
import type { StartOptions, TestServer } from "./server.ts";

/** Starts a MySQL with an empty database, `test`, in a root of its own that is cached. */
export async function startMysql(options: StartOptions = {}): Promise<TestServer> {
  await using building = new AsyncDisposableStack();
  const { root, folder } = building.use(await openMysqlRoot(options.signal));
  const account = await accountNamed("mysql", `${root}/etc/passwd`);
  if (account !== undefined) await Deno.chown(folder, account.uid, account.gid);
  const ownFolder = folder.slice(root.length);
  const launch = { command: ["mysqld"], account, root };
  const initialize = [
    "--no-defaults",
    "--initialize-insecure",
    `--datadir=${ownFolder}/data`,
    "--innodb-use-native-aio=OFF",
  ];
  await runCommand("Creating a MySQL", {
    ...launch,
    command: ["mysqld", ...initialize],
  }, options.signal);
  return startMysqlFamily({
    ...options,
    name: "MySQL",
    folder,
    ownFolder,
    resources: building.move(),
    launch,
    defaults: { "disable-log-bin": "ON", mysqlx: "OFF" },
  });
}
