import type { RowLockStatements, TableDescription, TableFacts } from "../driver/dialect.ts";
import { Columns } from "./columns.ts";

/** The row lock form's statements for one table. */
export function rowLockStatements(table: TableDescription, facts: TableFacts): RowLockStatements {
  const columns = new Columns(table, facts);
  const { attempt, payload, id } = columns;
  return {
    claim: {
      text: `SELECT t.${id} AS id, t.${payload} AS payload` +
        `${attempt === undefined ? "" : `, t.${attempt} AS attempt`} ` +
        `FROM ${columns.table} AS t ORDER BY t.${id} LIMIT ? FOR UPDATE SKIP LOCKED`,
      params: [({ limit }) => BigInt(limit)],
    },
    remove: byId(columns, `DELETE t FROM ${columns.table} AS t`),
    ...(attempt === undefined ? {} : {
      spend: byId(
        columns,
        `UPDATE ${columns.table} AS t SET t.${attempt} = ` +
          `LEAST(GREATEST(COALESCE(t.${attempt}, 1), 1), ${columns.highestAttempt}) + 1`,
      ),
    }),
    read: (row) => ({
      id: columns.readId(row),
      attempt: attempt === undefined ? undefined : Math.max(1, Number(row.attempt ?? 1)),
      payload: row.payload ?? null,
    }),
  };
}

function byId(columns: Columns, verb: string): RowLockStatements["remove"] {
  return { text: `${verb} WHERE t.${columns.id} = ?`, params: [({ id }) => id] };
}
