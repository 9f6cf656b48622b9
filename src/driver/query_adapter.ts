import type { JoinedTransaction, QueryAdapter, SqlRow } from "./driver.ts";

/** Whether it can stand for a transaction of any client. */
export function isQueryAdapter(tx: unknown): tx is QueryAdapter {
  return typeof (Object(tx) as Partial<QueryAdapter>).query === "function";
}

/** Runs statements through an adapter. */
export function joinAdapter(adapter: QueryAdapter): JoinedTransaction {
  return {
    async query(text, params) {
      return { rows: rowsOf(await adapter.query(text, params)), changes: 0 };
    },
  };
}

/** The rows, `{ rows }`, or, as mysql2 gives them, `[rows, fields]`; none where there are none. */
function rowsOf(result: unknown): readonly SqlRow[] {
  if (Array.isArray(result)) {
    const [first] = result;
    return Array.isArray(first) ? first : isRow(first) && result.length >= 1 ? result : [];
  }
  const { rows } = Object(result) as { readonly rows?: unknown };
  return Array.isArray(rows) ? rows : [];
}

/** The header that mysql2 gives in place of rows is none. */
function isRow(value: unknown): value is SqlRow {
  return typeof value === "object" && value !== null && !("affectedRows" in value);
}
