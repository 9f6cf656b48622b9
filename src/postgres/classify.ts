import { DriverError, type DriverErrorKind } from "../errors.ts";

/** What an error of postgres.js, of the server or of the network means. */
export function classify(error: unknown): DriverErrorKind {
  if (error instanceof DriverError) return error.kind;
  const { code, severity, message, routine } = fieldsOf(error);
  if (code === PROTOCOL_VIOLATION) return protocolKind(severity, message);
  // Somebody altered the table: the client has dropped its prepared statement, and makes another.
  if (routine === "RevalidateCachedQuery") return "conflict";
  return KIND_BY_CODE[code] ?? KIND_BY_CLASS[code.slice(0, 2)] ??
    (NETWORK.test(code) ? "disconnected" : "other");
}

/** The SQLSTATE of a server's error, or the word that stands for a client's or system's. */
export function codeOf(error: unknown): string {
  return fieldsOf(error).code;
}

/** Everything that PgBouncer itself has to say comes under this code, and ends the connection. */
function protocolKind(severity: string, message: string): DriverErrorKind {
  if (message.includes("startup parameter")) return "unusable";
  return severity === "FATAL" ? "disconnected" : "other";
}

interface ErrorFields {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly routine: string;
}

function fieldsOf(error: unknown): ErrorFields {
  const { code = "", severity = "", message = "", routine = "" } = Object(error);
  return { code: String(code), severity, message, routine };
}

const PROTOCOL_VIOLATION = "08P01";

/**
 * By SQLSTATE. A lock timeout is 55P03; 57014 is a statement that took too long or was cancelled,
 * and would again.
 */
const KIND_BY_CODE: Readonly<Record<string, DriverErrorKind>> = {
  "40001": "conflict", // serialization_failure
  "40P01": "conflict", // deadlock_detected
  "55P03": "conflict", // lock_not_available
  "25006": "read-only", // read_only_sql_transaction
  "25P03": "disconnected", // idle_in_transaction_session_timeout
  "25P04": "disconnected", // transaction_timeout
  "53300": "disconnected", // too_many_connections
  "57P01": "disconnected", // admin_shutdown
  "57P02": "disconnected", // crash_shutdown
  "57P03": "disconnected", // cannot_connect_now
  "57P04": "disconnected", // database_dropped
  "57P05": "disconnected", // idle_session_timeout
  "42P01": "missing", // undefined_table
  "42703": "missing", // undefined_column
  "3F000": "missing", // invalid_schema_name
  "3D000": "unusable", // invalid_catalog_name: no such database
};

/** By the first two characters of the SQLSTATE. */
const KIND_BY_CLASS: Readonly<Record<string, DriverErrorKind>> = {
  "08": "disconnected", // connection exception
  "23": "constraint", // integrity constraint violation
  "28": "unusable", // invalid authorization
};

/** Codes of the client, and of the system below it. */
const NETWORK =
  /^(CONNECTION_(CLOSED|ENDED|DESTROYED)|CONNECT_TIMEOUT|ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|E(HOST|NET)(UNREACH|DOWN)|ENOENT|ERR_STREAM_\w+)$/;
