import { DriverError, type DriverErrorKind } from "../errors.ts";
import { classify, codeOf } from "./classify.ts";

/** A client's or server's error, told with what was attempted and what can be done about it. */
export function failure(error: unknown, attempt: string): DriverError {
  if (error instanceof DriverError) return error;
  const kind = classify(error);
  const code = codeOf(error);
  const message = `Cannot ${attempt}: ${reasonOf(error, code)}; ${FIX_BY_CODE[code] ?? FIX[kind]}`;
  return new DriverError(kind, message, { cause: error });
}

/** A statement as messages show it. Its text holds no values: they are parameters. */
export function excerpt(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return `run ${line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line}`;
}

/** The wait for the server was given up. */
export function noAnswer(attempt: string, ms: number): DriverError {
  return new DriverError(
    "disconnected",
    `Cannot tell whether this succeeded: ${attempt}: there was no answer within ${ms} ms; ` +
      `check the network and the server, and that enough connections are free`,
    { cause: Object.assign(new Error("No answer"), { code: "NO_ANSWER" }) },
  );
}

/** Whether an error says that connections of the client may be stuck. */
export function isStuck(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return STUCK.has(codeOf(error)) || isStuck(error.cause);
}

/**
 * Whether an error belongs to what was sent on the connection before it was made anew: the client
 * keeps the server's last words and gives them to the next statement, which it then does not send.
 * Of a statement that was in flight it says `CONNECTION_CLOSED` or so, never this.
 */
export function isLeftOver(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return LAST_WORDS.has(codeOf(error)) || isLeftOver(error.cause);
}

/** Whether the server has not run the statement because an earlier one of the transaction failed. */
export function isAfterFailure(error: unknown): boolean {
  return error instanceof Error && codeOf(error.cause) === "25P02";
}

/** Errors about values quote them, and those may be a payload's. */
function reasonOf(error: unknown, code: string): string {
  const message = error instanceof Error ? error.message : String(error);
  const shown = code.startsWith("22") && code !== BAD_ENCODING
    ? message.replace(/["'«»„“”‹›].*["'«»„“”‹›]/s, "(a value)")
    : message;
  return /^[0-9A-Z]{5}$/.test(code) ? `${shown} (${code})` : shown;
}

const LONGEST = 80;
const BAD_ENCODING = "22021";
const STUCK: ReadonlySet<string> = new Set(["NO_ANSWER", "CONNECT_TIMEOUT"]);
/** With these the server ends a connection that it has served. */
const LAST_WORDS: ReadonlySet<string> = new Set(["57P01", "57P02", "57P05", "25P03", "25P04"]);

const FIX: Readonly<Record<DriverErrorKind, string>> = {
  conflict: "try again",
  disconnected: "try again once the server can be reached",
  unusable: "check the address, the database, the user and the password",
  "read-only": "connect to the primary, with a user that may write",
  constraint: "mend the row, or the constraint",
  missing: "create it, or describe the table as it is",
  other: "the server's log may say more",
};

const FIX_BY_CODE: Readonly<Record<string, string>> = {
  "08P01": "behind PgBouncer give the option pgBouncer: true",
  "22021": "Postgres text holds no NUL and only valid UTF-8: store such text as bytea",
  "26000": "behind a pooler of transactions give the option prepare: false",
  "42P05": "behind a pooler of transactions give the option prepare: false",
  "53300": "raise max_connections of the server, or give fewer connections",
  "57014": "make the statement faster, or raise the option statementTimeout",
};
