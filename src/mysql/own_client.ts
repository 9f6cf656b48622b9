import mysql2 from "mysql2";
import type { ClientConnection } from "./client.ts";

/** Where a server is, in parts. */
export interface MysqlAddress {
  /** A host name or an address. `localhost` where it is left out. */
  readonly host?: string;
  /** 3306 where it is left out. */
  readonly port?: number;
  /** The path of a Unix socket, instead of host and port. */
  readonly socketPath?: string;
  /** The database. */
  readonly database?: string;
  /** The user. */
  readonly user?: string;
  /** The password, or what asks for it at each connection. */
  readonly password?: string | (() => string | Promise<string>);
  /**
   * Whether the connection is encrypted and the server has to prove its name, or the options of
   * `tls.createSecureContext` with `rejectUnauthorized` and `verifyIdentity`.
   */
  readonly ssl?: boolean | object;
}

/** Opens a connection. */
export async function connect(address: MysqlAddress): Promise<ClientConnection> {
  const { password, ssl, ...place } = address;
  const client = mysql2.createConnection({
    ...place,
    password: typeof password === "function" ? await password() : password,
    ...(ssl ? { ssl: ssl === true ? { verifyIdentity: true } : { ...ssl } } : {}),
    charset: "utf8mb4",
    timezone: "Z",
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
    jsonStrings: true,
    multipleStatements: false,
    flags: ["+FOUND_ROWS", "-LOCAL_FILES"],
    connectTimeout: MILLISECONDS_TO_CONNECT,
    enableKeepAlive: true,
    keepAliveInitialDelay: MILLISECONDS_TO_KEEP_ALIVE,
    maxPreparedStatements: MOST_PREPARED,
  });
  await new Promise<void>((resolve, reject) => {
    client.on("error", reject);
    client.once("connect", () => resolve());
  }).catch((error) => {
    client.destroy();
    throw error;
  });
  return client as unknown as ClientConnection;
}

/**
 * An integer as a parameter of eight bytes. A number would be sent as DOUBLE, and MariaDB reckons
 * with a text as if it were one.
 */
export function integer(value: bigint): unknown {
  if (value === BigInt.asIntN(64, value)) return mysql2.TypedParameter.LONGLONG(value);
  if (value === BigInt.asUintN(64, value)) return mysql2.TypedParameter.LONGLONG.unsigned(value);
  return String(value);
}

const MILLISECONDS_TO_CONNECT = 10_000;
const MILLISECONDS_TO_KEEP_ALIVE = 10_000;
/** The server has a limit for all connections together, of 16,382 unless it was changed. */
const MOST_PREPARED = 250;
