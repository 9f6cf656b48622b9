import { serviceAccount } from "./account.ts";
import { exists } from "./exists.ts";
import { pgBouncerBinary } from "./pgbouncer_binary.ts";
import { removePath } from "./remove_path.ts";
import type { StartOptions, TestServer } from "./server.ts";
import { throwawayFolder } from "./throwaway_folder.ts";
import { throwawayServer } from "./throwaway_server.ts";

/** What a PgBouncer stands before, and how it shares it. */
export interface PgBouncerOptions extends StartOptions {
  /** The url of a Postgres. */
  readonly postgres: string;
  /** How long a client keeps its connection to Postgres. */
  readonly poolMode: "transaction" | "session";
}

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addr: "127.0.0.1",
  auth_type: "any",
  max_client_conn: "1000",
  default_pool_size: "50",
  ignore_startup_parameters: "extra_float_digits",
};

/** Starts a PgBouncer that lets in everybody, as the user of the Postgres' url. */
export async function startPgBouncer(options: PgBouncerOptions): Promise<TestServer> {
  const { binary, version } = await pgBouncerBinary();
  const account = await serviceAccount("postgres");
  const postgres = new URL(options.postgres);
  await using building = new AsyncDisposableStack();
  const folder = building.use(await throwawayFolder("pgbouncer", account)).path;
  const config = `${folder}/pgbouncer.ini`;
  const settings = {
    unix_socket_dir: folder,
    pool_mode: options.poolMode,
    ...SETTINGS,
    ...options.settings,
  };
  return throwawayServer({
    name: "PgBouncer",
    folder,
    resources: building.move(),
    // Its SIGINT waits for the clients to finish.
    stopSignals: { fast: "SIGTERM", immediate: "SIGKILL" },
    url: (port) => `postgres://${postgres.username}@127.0.0.1:${port}${postgres.pathname}`,
    launch: (port) => {
      Deno.writeTextFileSync(
        config,
        configuration(postgres, { listen_port: `${port}`, ...settings }),
      );
      return { command: [binary, config], account };
    },
    // The socket is opened after the port: with it, the port is known to be this server's.
    probe: async (port) => await exists(`${folder}/.s.PGSQL.${port}`) ? version : undefined,
    clean: (port) => removePath(`${folder}/.s.PGSQL.${port}`),
  }, options.signal);
}

function configuration(postgres: URL, settings: Readonly<Record<string, string>>): string {
  const target = Object.entries({
    host: postgres.hostname,
    port: postgres.port || "5432",
    user: decodeURIComponent(postgres.username),
    password: decodeURIComponent(postgres.password),
  }).filter(([, value]) => value !== "");
  return [
    "[databases]",
    `* = ${target.map(([name, value]) => `${name}='${value.replaceAll("'", "''")}'`).join(" ")}`,
    "[pgbouncer]",
    ...Object.entries(settings).map(([name, value]) => `${name} = ${value}`),
    "",
  ].join("\n");
}
