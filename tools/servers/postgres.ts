import { serviceAccount } from "./account.ts";
import { postgresBinaries } from "./postgres_binaries.ts";
import { cleanPostgres, freeSharedMemory, postgresReady } from "./postgres_pid_file.ts";
import { runCommand } from "./run_command.ts";
import type { StartOptions, TestServer } from "./server.ts";
import { throwawayFolder } from "./throwaway_folder.ts";
import { throwawayServer } from "./throwaway_server.ts";

/** Fast, and still safe against the end of the process: only the machine must not crash. */
const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: "127.0.0.1",
  fsync: "off",
  full_page_writes: "off",
  max_connections: "300",
  // In the data folder rather than in the system's memory, where it could be left behind.
  dynamic_shared_memory_type: "mmap",
};

/** Starts a Postgres whose only user, `postgres`, needs no password. */
export async function startPostgres(options: StartOptions = {}): Promise<TestServer> {
  const { signal } = options;
  const binaries = await postgresBinaries();
  const account = await serviceAccount("postgres");
  await using building = new AsyncDisposableStack();
  const folder = building.use(await throwawayFolder("postgres", account)).path;
  const data = `${folder}/data`;
  building.defer(() => freeSharedMemory(data));
  const initdb = [binaries.initdb, "-D", data, "-U", "postgres", "-A", "trust"];
  const format = ["--no-sync", "-E", "UTF8", "--locale=C"];
  const version = await runCommand("Asking Postgres for its version", {
    command: [binaries.postgres, "--version"],
  });
  await runCommand("Creating a Postgres", { command: [...initdb, ...format], account }, signal);

  const settings = { unix_socket_directories: folder, ...SETTINGS, ...options.settings };
  const set = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return throwawayServer({
    name: "Postgres",
    folder,
    resources: building.move(),
    stopSignals: { fast: "SIGINT", immediate: "SIGQUIT" },
    url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    launch: (port) => ({
      command: [binaries.postgres, "-D", data, "-p", `${port}`, ...set],
      account,
      deathSignal: "QUIT",
    }),
    probe: async (_port, pid) =>
      await postgresReady(data, pid) ? version.match(/[0-9][0-9.]*/)?.[0] : undefined,
    clean: (port) => cleanPostgres(data, `${folder}/.s.PGSQL.${port}`),
  }, signal);
}
