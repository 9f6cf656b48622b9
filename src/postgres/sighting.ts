import type { Reply } from "./values.ts";

/** Which process of the server has served a connection at some moment. */
export interface Sighting {
  /** The process as told at the connection's start. A pooler makes up one for each connection. */
  readonly connection: number | undefined;
  /** The process that has answered. */
  readonly process: number;
  /** Whether nothing stands between the two. */
  readonly isDirect: boolean;
}

/** The statement that tells who serves. */
export const WHO_SERVES = "SELECT pg_backend_pid() AS process";

/** Reads the reply to `WHO_SERVES`. */
export function whoServed({ rows, process: connection }: Reply): Sighting {
  const process = Number(rows[0]?.process);
  return { connection, process, isDirect: connection === process };
}
