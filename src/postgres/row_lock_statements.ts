import type {
  MessageId,
  RowLockStatements,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { Columns } from "./columns.ts";
import { Parameters } from "./parameters.ts";

/** The row lock form's statements for one table. */
export function rowLockStatements(table: TableDescription, facts: TableFacts): RowLockStatements {
  const columns = new Columns(table, facts);
  const { attempt } = columns;
  return {
    claim: claim(columns),
    remove: byId(columns, `DELETE FROM ${columns.table} AS t`),
    ...(attempt === undefined ? {} : {
      spend: byId(
        columns,
        `UPDATE ${columns.table} AS t SET ${attempt} = ` +
          `least(greatest(coalesce(t.${attempt}, 1), 1), ${columns.highestAttempt}) + 1`,
      ),
    }),
    read: (row) => ({
      id: columns.readId(row),
      attempt: attempt === undefined ? undefined : Math.max(1, Number(row.attempt ?? 1)),
      payload: row.payload ?? null,
    }),
  };
}

function claim(columns: Columns): RowLockStatements["claim"] {
  const { id, table, attempt, payload } = columns;
  const parameters = new Parameters<{ readonly limit: number }>();
  const limit = parameters.add(({ limit }) => String(limit));
  const bytes = columns.type("payload") === "bytea";
  return parameters.statement(
    `SELECT t.${id}::text AS id, t.${payload}${bytes ? "" : "::text"} AS payload` +
      `${attempt === undefined ? "" : `, t.${attempt}::text AS attempt`} ` +
      `FROM ${table} AS t ORDER BY t.${id} LIMIT ${limit}::text::bigint FOR UPDATE SKIP LOCKED`,
  );
}

function byId(columns: Columns, verb: string): RowLockStatements["remove"] {
  const parameters = new Parameters<{ readonly id: MessageId }>();
  const id = columns.cast("id", parameters.add(({ id }) => String(id)));
  return parameters.statement(
    `${verb} WHERE t.${columns.id} = ${id} RETURNING t.${columns.id}::text AS id`,
  );
}
