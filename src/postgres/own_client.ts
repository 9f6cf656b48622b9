import postgres from "postgres";
import type { ListeningSql, ListeningSqlEvents, OwnSql } from "./client.ts";

/** Where a server is, in parts, as postgres.js takes it. */
export interface PostgresAddress {
  /** A host name, an address, or the folder of a Unix socket. `localhost` where it is left out. */
  readonly host?: string;
  /** 5432 where it is left out. */
  readonly port?: number;
  /** The database; where it is left out, the one named as the user. */
  readonly database?: string;
  /** The user. */
  readonly user?: string;
  /** The password, or what asks for it at each connection. */
  readonly password?: string | (() => string | Promise<string>);
  /** Whether the connection is encrypted, or the options of `tls.connect`. */
  readonly ssl?: boolean | "require" | "allow" | "prefer" | "verify-full" | object;
}

/** What a client of our own is made with. */
export interface OwnClientSettings {
  readonly address: string | PostgresAddress;
  readonly connections: number;
  readonly prepare: boolean;
  /** Server settings that come with every connection. */
  readonly startup: Readonly<Record<string, string>>;
}

/** A client of our own. It connects when the first statement is sent. */
export function openOwnClient(
  { address, connections, prepare, startup }: OwnClientSettings,
): OwnSql {
  const options = {
    max: connections,
    prepare,
    connection: { ...startup },
    connect_timeout: SECONDS_TO_CONNECT,
    // Values pass as text, so that the client needs to know of no types.
    fetch_types: false,
    // Whoever uses the driver waits between its attempts.
    backoff: () => SECONDS_TO_RECONNECT,
    // It would print them.
    onnotice: () => {},
  };
  return typeof address === "string"
    ? postgres(address, options)
    : postgres({ ...address, ...options });
}

/** A client of one connection that stays open, and tells what is notified on it. */
export function openListeningClient(
  { address, startup }: Pick<OwnClientSettings, "address" | "startup">,
  events: ListeningSqlEvents,
): ListeningSql {
  const options = {
    max: 1,
    prepare: false,
    connection: { ...startup },
    connect_timeout: SECONDS_TO_CONNECT,
    fetch_types: false,
    backoff: () => SECONDS_TO_RECONNECT,
    onnotice: () => {},
    max_lifetime: null,
    ...events,
  };
  return typeof address === "string"
    ? postgres(address, options)
    : postgres({ ...address, ...options });
}

const SECONDS_TO_CONNECT = 10;
const SECONDS_TO_RECONNECT = 0.1;
