import { startMariadb } from "./mariadb.ts";
import { startMysql } from "./mysql.ts";
import { startPostgres } from "./postgres.ts";
import { startRedis } from "./redis.ts";
import type { StartOptions, TestServer } from "./server.ts";

/** The servers that all tests of a run share. */
export type ServerName = "postgres" | "mariadb" | "mysql" | "redis";

/** Where a server is, or why there is none. */
export type ServerFound =
  | { readonly url: string; readonly reason?: undefined }
  | { readonly url?: undefined; readonly reason: string };

/** One of the servers that `deno task test` starts. */
export interface SharedServer {
  readonly title: string;
  /** The environment variable that tells the tests its url. */
  readonly variable: string;
  readonly start: (options: StartOptions) => Promise<TestServer>;
}

/** The servers that `deno task test` starts, in the order in which it names them. */
export const SHARED_SERVERS: Readonly<Record<ServerName, SharedServer>> = {
  postgres: { title: "Postgres", variable: "HOLDFAST_TEST_POSTGRES", start: startPostgres },
  mariadb: { title: "MariaDB", variable: "HOLDFAST_TEST_MARIADB", start: startMariadb },
  mysql: { title: "MySQL", variable: "HOLDFAST_TEST_MYSQL", start: startMysql },
  redis: { title: "Redis", variable: "HOLDFAST_TEST_REDIS", start: startRedis },
};

/**
 * The server that all tests of this run share. `deno task test` starts it; without that, tests that
 * need it are to be ignored, with the reason in print.
 */
export function serverUrl(name: ServerName): Promise<ServerFound> {
  const { title, variable } = SHARED_SERVERS[name];
  const url = Deno.env.get(variable);
  return Promise.resolve(
    url ? { url } : {
      reason: `${title} is not there, ${variable} is not set: run the tests with deno task test, ` +
        "or set it to the url of a server that they may fill",
    },
  );
}
