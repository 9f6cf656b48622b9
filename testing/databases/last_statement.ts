import type { SqlValue } from "../../src/driver/driver.ts";

/** What a connection last ran, as the end of a sentence; empty where the server does not tell. */
export function lastStatement(text: SqlValue | undefined): string {
  const line = String(text ?? "").replace(/\s+/g, " ").trim();
  if (line === "") return "";
  return `, which last ran: ${line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line}`;
}

const LONGEST = 120;
