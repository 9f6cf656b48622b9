import {
  type ClaimAtOnce,
  expiryOf,
  type LeaseTimes,
  type MessageId,
  type QueueUse,
} from "../driver/dialect.ts";
import type { Columns } from "./columns.ts";
import { QueueSql, where } from "./queue_sql.ts";
import { headSearch, search } from "./search.ts";
import { EPOCH } from "./times.ts";

type ClaimValues = LeaseTimes & { readonly limit: number };

/**
 * Claims rows in one statement: ended leases in order of expiry, then free rows; of a FIFO queue, its
 * head. The rows are taken by an array of ids: a join would be planned for as many rows as the limit
 * might let in, and read the whole table.
 */
export function leaseClaim(columns: Columns, use: QueueUse, fifo: boolean): ClaimAtOnce {
  const sql = new QueueSql<ClaimValues>(columns, use);
  const { table, id, lockedUntil } = columns;
  const { until, said } = lease(sql, use);
  const set = [`${lockedUntil} = ${until}`, ...columns.countAttempt];
  const claim = sql.statement(
    `WITH RECURSIVE ${(fifo ? head(sql) : found(sql)).join(", ")}, due AS (
  SELECT id, row_number() OVER () AS position FROM found
), taken AS (
  UPDATE ${table} AS t SET ${set.join(", ")}
  WHERE t.${id} = ANY (ARRAY(SELECT id FROM due))
  RETURNING t.${id} AS key, ${columns.delivered},
    ${milliseconds(columns, `t.${lockedUntil}`)} AS expiry${said}
)
SELECT taken.* FROM taken JOIN due ON due.id = taken.key ORDER BY due.position`,
  );
  return { kind: "at once", claim, take: take(columns, use) };
}

/** Takes rows that another statement has found and locked. */
function take(columns: Columns, use: QueueUse): ClaimAtOnce["take"] {
  const sql = new QueueSql<LeaseTimes & { readonly ids: readonly MessageId[] }>(columns, use);
  const { table, id, lockedUntil } = columns;
  const { until, said } = lease(sql, use);
  const ids = sql.parameters.add(({ ids }) => JSON.stringify(ids.map(String)));
  const set = [`${lockedUntil} = ${until}`, ...columns.countAttempt];
  return sql.statement(
    `UPDATE ${table} AS t SET ${set.join(", ")}
WHERE t.${id} IN (
  SELECT ${columns.cast("id", "value")} FROM json_array_elements_text(${ids}::text::json) AS value
) AND (t.${lockedUntil} IS NULL OR t.${lockedUntil} <= ${sql.times.now("lockedUntil")})
RETURNING ${columns.delivered}, ${milliseconds(columns, `t.${lockedUntil}`)} AS expiry${said}`,
  );
}

/** The tables that make up `found`, the ids of the rows that are locked and to be taken. */
function found(sql: QueueSql<ClaimValues>): readonly string[] {
  const { id } = sql.columns;
  const limit = `${sql.parameters.add(({ limit }) => String(limit))}::text::bigint`;
  const left = `greatest(0, ${limit} - (SELECT count(*) FROM expired))`;
  const { tables, select } = search(sql, `t.${id} AS id`, limit, left);
  return [
    ...tables,
    expired(sql, limit),
    `free AS MATERIALIZED (\n  ${select}\n)`,
    `found AS (\n  SELECT id FROM expired UNION ALL SELECT id FROM free\n)`,
  ];
}

/** Rows whose lease has ended. They were due when they were claimed, and are not asked again. */
function expired({ columns, rows, times }: QueueSql<ClaimValues>, limit: string): string {
  const { id, lockedUntil, table } = columns;
  const conditions = [...rows, `t.${lockedUntil} <= ${times.now("lockedUntil")}`];
  return `expired AS MATERIALIZED (
  SELECT t.${id} AS id FROM ${table} AS t ${where(conditions)}
  ORDER BY t.${lockedUntil}, t.${id} LIMIT ${limit} FOR UPDATE SKIP LOCKED
)`;
}

function head(sql: QueueSql<ClaimValues>): readonly string[] {
  return [`found AS MATERIALIZED (\n  ${headSearch(sql, `t.${sql.columns.id} AS id`)}\n)`];
}

interface Lease {
  /** When the lease ends: at a whole second. */
  readonly until: string;
  /** What the database's clock says, as one more column. */
  readonly said: string;
}

function lease<Values extends LeaseTimes>(
  { columns, parameters, times }: QueueSql<Values>,
  use: QueueUse,
): Lease {
  if (use.clock === "given") return { until: times.at("lockedUntil", expiryOf), said: "" };
  const seconds = parameters.add(({ leaseSeconds }) => String(leaseSeconds));
  return {
    until: columns.countsMilliseconds("lockedUntil")
      ? `(floor(${EPOCH})::bigint + 1 + ${seconds}::text::bigint) * 1000`
      : `date_trunc('second', statement_timestamp()) + ` +
        `(1 + ${seconds}::text::int) * interval '1 second'`,
    said: `, (${EPOCH} * 1000)::text AS now`,
  };
}

function milliseconds(columns: Columns, time: string): string {
  return columns.countsMilliseconds("lockedUntil")
    ? `${time}::text`
    : `round(extract(epoch FROM ${time}) * 1000)::text`;
}
