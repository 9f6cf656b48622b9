/** How connections are used. */
export interface Sending {
  /** How long the server may work on one statement, in milliseconds. */
  readonly statementTimeout: number;
  /** How long the server may leave a statement without an answer, in milliseconds. */
  readonly patience: number;
  /** How often an idle transaction shows the server that its holder lives, in milliseconds. */
  readonly heartbeat: number;
}

/** Made by every connection before its first statement; both servers ignore what is the other's. */
export function settingStatements({ statementTimeout }: Sending): readonly string[] {
  const settings = [
    "autocommit = 1",
    "completion_type = 'NO_CHAIN'",
    "time_zone = '+00:00'",
    `sql_mode = '${STRICT}'`,
    `innodb_lock_wait_timeout = ${SECONDS_FOR_LOCKS}`,
    `lock_wait_timeout = ${SECONDS_FOR_LOCKS}`,
    // A holder that is alive sends something every 10 s; its pool makes a new connection otherwise.
    `wait_timeout = ${SECONDS_OF_SILENCE}`,
  ];
  const mariadb = [
    `idle_transaction_timeout = ${SECONDS_OF_SILENCE}`,
    `max_statement_time = ${statementTimeout / 1000}`,
  ];
  const mysql = [`max_execution_time = ${statementTimeout}`];
  return [
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
    `SET ${settings.join(", ")} /*M! , ${mariadb.join(", ")} */ ` +
    `/*!80000 , ${mysql.join(", ")} */`,
  ];
}

/** Asks for what {@link readServer} reads. Only MariaDB runs what stands in its own comments. */
export const SERVER_QUERY: string =
  "SELECT VERSION() AS version, 0 /*M! + 1 */ AS mariadb, @@max_allowed_packet AS largest, " +
  "@@character_set_client AS sent_as, @@character_set_results AS read_as";

/** Which of the two databases a server is. */
export type MysqlFlavor = "mysql" | "mariadb";

/** What a connection knows of its server. */
export interface Server {
  readonly flavor: MysqlFlavor;
  readonly version: string;
  /** How many bytes a statement may take. */
  readonly largest: number;
  /** Whether text passes as it is, whatever is in it. */
  readonly takesAllText: boolean;
}

/** Reads the row of {@link SERVER_QUERY}. */
export function readServer(row: Readonly<Record<string, unknown>>): Server {
  return {
    flavor: Number(row.mariadb) === 1 ? "mariadb" : "mysql",
    version: String(row.version),
    largest: Number(row.largest),
    takesAllText: row.sent_as === "utf8mb4" && row.read_as === "utf8mb4",
  };
}

/** Why this server cannot be used; `undefined` if it can. */
export function tooOld({ flavor, version }: Server): string | undefined {
  const { name, oldest } = OLDEST[flavor];
  const [found = [], needed = []] = [version, oldest].map((each) =>
    each.match(/\d+/g)?.map(Number)
  );
  const at = needed.findIndex((part, index) => (found[index] ?? 0) !== part);
  if (at < 0 || (found[at] ?? 0) > needed[at]!) return undefined;
  return `the server is ${name} ${version}; Holdfast needs ${oldest} or later`;
}

const OLDEST: Readonly<Record<MysqlFlavor, { readonly name: string; readonly oldest: string }>> = {
  mysql: { name: "MySQL", oldest: "8.0.1" },
  mariadb: { name: "MariaDB", oldest: "10.6" },
};

/** As a whole: modes that a server adds could change what a statement means. */
const STRICT = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE," +
  "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";
const SECONDS_FOR_LOCKS = 10;
const SECONDS_OF_SILENCE = 45;
