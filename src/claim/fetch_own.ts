import type { LockedRow, OwnFetch } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { OpenTransaction } from "../held_transaction.ts";

/** What rows hold for their handler, read by a statement of the service's own, if there is one. */
export async function fetchOwn(
  rows: readonly LockedRow[],
  { fetch, read }: { readonly fetch?: OwnFetch; read(row: SqlRow): LockedRow },
  transaction: Pick<OpenTransaction, "run">,
  now: () => number,
): Promise<readonly LockedRow[]> {
  if (fetch === undefined) return rows;
  const fetched: LockedRow[] = [];
  for (const row of rows) {
    const { rows: [found] } = await transaction.run(fetch.statement, { id: row.id, now: now() });
    if (found === undefined) fetched.push(row);
    else {
      const whole = { ...fetch.alias(found), id: String(row.id) };
      fetched.push({ ...row, content: read(whole).content });
    }
  }
  return fetched;
}
