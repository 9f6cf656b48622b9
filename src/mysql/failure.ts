import { DriverError, type DriverErrorKind } from "../errors.ts";
import { classify, numberOf } from "./classify.ts";

/** A client's or server's error, told with what was attempted and what can be done about it. */
export function failure(error: unknown, attempt: string): DriverError {
  if (error instanceof DriverError) return error;
  const kind = classify(error);
  const number = numberOf(error);
  const fix = FIX_BY_NUMBER[number] ?? FIX[kind];
  return new DriverError(kind, `Cannot ${attempt}: ${reasonOf(error, number)}; ${fix}`, {
    cause: error,
  });
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
      `check the network and the server`,
  );
}

/** Errors about values quote them, and those may be a payload's. */
function reasonOf(error: unknown, number: number): string {
  const message = error instanceof Error ? error.message : String(error);
  if (number === 0) return message || codeOf(error);
  const shown = QUOTES_A_VALUE.has(number)
    ? message.replace(/'.*'(?= for )|'.*'/s, "(a value)")
    : message;
  return `${shown} (${number})`;
}

/** An attempt at several addresses, as of `localhost`, fails without a message. */
function codeOf(error: unknown): string {
  return String(Object(error).code ?? "no reason was given");
}

const LONGEST = 80;
const QUOTES_A_VALUE: ReadonlySet<number> = new Set([
  1062, // Duplicate entry 'x' for key 'y'
  1265, // Data truncated
  1292, // Truncated incorrect DOUBLE value: 'x'
  1300, // Invalid utf8mb4 character string: 'x'
  1366, // Incorrect integer value: 'x' for column 'y'
  1411, // Incorrect datetime value: 'x' for function y
  1525, // Incorrect DATETIME value: 'x'
  1586, // Duplicate entry 'x' for key 'y'
  1690, // BIGINT value is out of range in 'x'
]);

const FIX: Readonly<Record<DriverErrorKind, string>> = {
  conflict: "try again",
  disconnected: "try again once the server can be reached",
  unusable: "check the address, the database, the user and the password",
  "read-only": "connect to the primary, with a user that may write",
  constraint: "mend the row, or the constraint",
  missing: "create it, or describe the table as it is",
  other: "the server's log may say more",
};

const FIX_BY_NUMBER: Readonly<Record<number, string>> = {
  1040: "raise max_connections of the server, or give fewer connections",
  1153: "raise max_allowed_packet of the server",
  1203: "raise the user's limit of connections, or give fewer connections",
  1213: "roll back and try again",
  1290: "connect to the primary, or switch read_only off",
  1366: "store what is no text as bytes, and give the column the character set utf8mb4",
  1461: "raise max_prepared_stmt_count of the server",
  1969: "make the statement faster, or raise the option statementTimeout",
  3024: "make the statement faster, or raise the option statementTimeout",
  3057: "name a database where you connect: locks are by database",
};
