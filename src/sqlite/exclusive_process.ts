import { DriverError } from "../errors.ts";
import type { SqliteClient } from "./client.ts";
import { openNodeClient } from "./node_client.ts";
import { classify } from "./result_code.ts";

/**
 * Keeps other processes from using the locks of a database, which they could not see: a lock on a
 * file beside it, which the kernel gives back when the process dies. The file is never deleted, since
 * somebody might be opening it just then.
 *
 * @param file the database's full name
 * @throws {DriverError} `unusable` if another process has it, or the file cannot be made
 */
export function enterExclusively(file: string): void {
  const entered = processes.get(file) ?? { client: lockFile(file), users: 0 };
  entered.users++;
  processes.set(file, entered);
}

/** Gives a share back; the last one lets other processes in. */
export function leaveExclusively(file: string): void {
  const entered = processes.get(file);
  if (entered === undefined || --entered.users > 0) return;
  processes.delete(file);
  entered.client.release();
  entered.client.close();
}

function lockFile(file: string): SqliteClient {
  const beside = `${file}-holdfast`;
  let client: SqliteClient | undefined;
  try {
    client = openNodeClient(beside);
    client.query("BEGIN EXCLUSIVE", []);
    // A file that may only be read is opened all the same, and then this only begins to read, which
    // any number of processes may do; writing is refused.
    client.query("PRAGMA user_version = 0", []);
    return client;
  } catch (cause) {
    client?.close();
    throw refusal(file, beside, cause);
  }
}

function refusal(file: string, beside: string, cause: unknown): DriverError {
  const cannot = `Cannot use advisory locks on the SQLite database ${JSON.stringify(file)}`;
  if (classify(cause) === "conflict") {
    return new DriverError(
      "unusable",
      `${cannot}: another process does, and the two would not see each other's; run one process on ` +
        `the file in the advisory lock form, or use the lease form in all of them`,
      { cause },
    );
  }
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new DriverError(
    "unusable",
    `${cannot}: ${JSON.stringify(beside)}, which tells other processes of it, cannot be locked ` +
      `(${reason}); let this process write that file and its folder`,
    { cause },
  );
}

const processes = new Map<string, { client: SqliteClient; users: number }>();
