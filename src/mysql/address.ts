import type { MysqlAddress } from "./own_client.ts";

/** Reads a URL as `mysql://user:password@host:port/database`. No error of it shows the password. */
export function readUrl(text: string): MysqlAddress {
  if (!/^(mysql|mariadb):\/\/./.test(text)) throw unreadable("it does not start with mysql://");
  const url = parse(text);
  if (url.search !== "" || url.hash !== "") {
    throw unreadable("it has settings after a ? or #; give them as { host, database, ssl, … }");
  }
  return {
    host: decode(url.hostname.replace(/^\[(.*)\]$/, "$1")) ?? "localhost",
    port: url.port === "" ? undefined : Number(url.port),
    database: decode(url.pathname.slice(1)),
    user: decode(url.username),
    password: decode(url.password),
  };
}

/** The address without user and password, for messages. */
export function labelOf(
  { host = "localhost", port = 3306, socketPath, database }: MysqlAddress,
): string {
  return `"${socketPath ?? `${host}:${port}`}/${database ?? ""}"`;
}

function parse(text: string): URL {
  try {
    return new URL(text);
  } catch {
    throw unreadable("write what is special in a user, password or database in percent encoding");
  }
}

function decode(part: string): string | undefined {
  try {
    return part === "" ? undefined : decodeURIComponent(part);
  } catch {
    throw unreadable("what stands after a % is no percent encoding");
  }
}

function unreadable(reason: string): TypeError {
  return new TypeError(`Cannot read this address of a MySQL or MariaDB database: ${reason}`);
}
