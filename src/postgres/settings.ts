import type { PostgresAddress } from "./own_client.ts";

/** The options that become settings of the server. */
export interface SettingOptions {
  readonly applicationName?: string;
  readonly statementTimeout?: number;
  readonly pgBouncer?: boolean;
}

type Settings = Readonly<Record<string, string>>;

/**
 * Settings that come with every connection. They belong to the connection's start, not to a SET,
 * which behind a pooler would stay with the server's connection and reach strangers. PgBouncer
 * takes no others than the first two.
 */
export function startupSettings(options: SettingOptions): Settings {
  const common = { application_name: options.applicationName ?? "holdfast", TimeZone: "UTC" };
  if (options.pgBouncer) return common;
  return {
    ...common,
    ...transactionSettings(options),
    default_transaction_isolation: "read committed",
    // A host that is gone is noticed within half a minute, and its transactions end.
    tcp_keepalives_idle: "10",
    tcp_keepalives_interval: "5",
    tcp_keepalives_count: "3",
  };
}

/** Settings that a transaction can make for itself alone. */
export function transactionSettings({ statementTimeout = 30_000 }: SettingOptions): Settings {
  return {
    statement_timeout: String(statementTimeout),
    // A holder that is alive sends something every 10 s.
    idle_in_transaction_session_timeout: "45000",
  };
}

/** The address without user, password and settings, for messages. */
export function labelOf(address: string | PostgresAddress): string {
  if (typeof address === "string") {
    return `"${address.replace(/^\w+:\/\/(.*@)?/s, "").replace(/[?#].*$/s, "")}"`;
  }
  const { host = "localhost", port = 5432, database = "" } = address;
  return `"${host}:${port}/${database}"`;
}
