import { DriverError, type DriverErrorKind } from "../errors.ts";

/** What an error of mysql2, of the server or of the network means. */
export function classify(error: unknown): DriverErrorKind {
  if (error instanceof DriverError) return error.kind;
  const { errno, code, message } = fieldsOf(error);
  return KIND_BY_NUMBER.get(errno) ?? kindByCode(code) ?? kindByMessage(code, message) ?? "other";
}

/** The number of a server's error; 0 for any other. */
export function numberOf(error: unknown): number {
  return fieldsOf(error).errno;
}

function kindByCode(code: string): DriverErrorKind | undefined {
  if (NETWORK.test(code)) return "disconnected";
  return HANDSHAKE.test(code) ? "unusable" : undefined;
}

/** What the client says itself has no code. */
function kindByMessage(code: string, message: string): DriverErrorKind | undefined {
  if (code !== "") return undefined;
  if (/closed state|^Pool is closed/.test(message)) return "disconnected";
  return /^(No connections available|Queue limit reached)/.test(message) ? "conflict" : undefined;
}

interface ErrorFields {
  readonly errno: number;
  readonly code: string;
  readonly message: string;
}

/** Errors of the system below have a negative number. */
function fieldsOf(error: unknown): ErrorFields {
  const { errno = 0, code = "", message = "" } = Object(error);
  return {
    errno: typeof errno === "number" && errno > 0 ? errno : 0,
    code: String(code),
    message: String(message),
  };
}

const NUMBERS: Readonly<Partial<Record<DriverErrorKind, readonly number[]>>> = {
  conflict: [
    1205, // ER_LOCK_WAIT_TIMEOUT, on MariaDB also of NOWAIT
    1213, // ER_LOCK_DEADLOCK
    1020, // ER_CHECKREAD
    3572, // ER_LOCK_NOWAIT
    1317, // ER_QUERY_INTERRUPTED: KILL QUERY
    1412, // ER_TABLE_DEF_CHANGED
    1615, // ER_NEED_REPREPARE
    3058, // ER_USER_LOCK_DEADLOCK
    3101, // ER_TRANSACTION_ROLLBACK_DURING_COMMIT
  ],
  disconnected: [
    1040, // ER_CON_COUNT_ERROR
    1047, // ER_UNKNOWN_COM_ERROR, in Galera a node that is not ready
    1053, // ER_SERVER_SHUTDOWN
    1158, // ER_NET_READ_ERROR
    1159, // ER_NET_READ_INTERRUPTED
    1160, // ER_NET_ERROR_ON_WRITE
    1161, // ER_NET_WRITE_INTERRUPTED
    1203, // ER_TOO_MANY_USER_CONNECTIONS
    1226, // ER_USER_LIMIT_REACHED
    1927, // ER_CONNECTION_KILLED
    2006, // CR_SERVER_GONE_ERROR
    2013, // CR_SERVER_LOST
    3169, // ER_SESSION_WAS_KILLED
    4031, // ER_CLIENT_INTERACTION_TIMEOUT
  ],
  unusable: [
    1044, // ER_DBACCESS_DENIED_ERROR
    1045, // ER_ACCESS_DENIED_ERROR
    1049, // ER_BAD_DB_ERROR
    1129, // ER_HOST_IS_BLOCKED
    1130, // ER_HOST_NOT_PRIVILEGED
    1251, // ER_NOT_SUPPORTED_AUTH_MODE
    1524, // ER_PLUGIN_IS_NOT_LOADED
    1698, // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
    1820, // ER_MUST_CHANGE_PASSWORD
    3118, // ER_ACCOUNT_HAS_BEEN_LOCKED
    3159, // ER_SECURE_TRANSPORT_REQUIRED
    4151, // ER_ACCOUNT_HAS_BEEN_LOCKED of MariaDB
  ],
  "read-only": [
    1290, // ER_OPTION_PREVENTS_STATEMENT
    1792, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
    1836, // ER_READ_ONLY_MODE
  ],
  constraint: [
    1048, // ER_BAD_NULL_ERROR
    1062, // ER_DUP_ENTRY
    1264, // ER_WARN_DATA_OUT_OF_RANGE
    1265, // WARN_DATA_TRUNCATED
    1292, // ER_TRUNCATED_WRONG_VALUE
    1364, // ER_NO_DEFAULT_FOR_FIELD
    1366, // ER_TRUNCATED_WRONG_VALUE_FOR_FIELD
    1406, // ER_DATA_TOO_LONG
    1451, // ER_ROW_IS_REFERENCED_2
    1452, // ER_NO_REFERENCED_ROW_2
    1586, // ER_DUP_ENTRY_WITH_KEY_NAME
    3140, // ER_INVALID_JSON_TEXT
    3819, // ER_CHECK_CONSTRAINT_VIOLATED
    4025, // ER_CONSTRAINT_FAILED of MariaDB
  ],
  missing: [
    1051, // ER_BAD_TABLE_ERROR
    1054, // ER_BAD_FIELD_ERROR
    1109, // ER_UNKNOWN_TABLE
    1146, // ER_NO_SUCH_TABLE
  ],
};

const KIND_BY_NUMBER: ReadonlyMap<number, DriverErrorKind> = new Map(
  Object.entries(NUMBERS).flatMap(([kind, numbers]) =>
    numbers.map((number) => [number, kind as DriverErrorKind] as const)
  ),
);

/** Codes of the client that mean that nothing more can be read, and of the system below it. */
const NETWORK =
  /^(PROTOCOL_(CONNECTION_LOST|ERROR|UNEXPECTED_PACKET|SEQUENCE_TIMEOUT)|NO_ANSWER|ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|E(HOST|NET)(UNREACH|DOWN)|ENOENT|ERR_STREAM_\w+|ERR_SOCKET_\w+)$/;
const HANDSHAKE = /^(HANDSHAKE_\w+|AUTH_SWITCH_PLUGIN_ERROR)$/;
