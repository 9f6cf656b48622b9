import { type ClaimAtOnce, type Clock, expiryOf, type LeaseTimes } from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import type { Columns } from "./columns.ts";
import { Parameters } from "./parameters.ts";

type ClaimValues = LeaseTimes & { readonly limit: number };

/**
 * Claims ended leases in order of expiry, then free rows in order of id, in one statement. The rows
 * are taken by an array of ids: a join would be planned for as many rows as the limit might let in,
 * and read the whole table.
 */
export function leaseClaim(columns: Columns, clock: Clock): ClaimAtOnce {
  return { kind: "at once", claim: claimStatement(columns, clock) };
}

function claimStatement(columns: Columns, clock: Clock): Statement<ClaimValues> {
  const { table, id, attempt, lockedUntil, payload } = columns;
  const parameters = new Parameters<ClaimValues>();
  const limit = `${parameters.add(({ limit }) => String(limit))}::text::bigint`;
  const { now, until, said } = clock === "database"
    ? databaseTimes(columns, parameters)
    : givenTimes(columns, parameters);
  const count = attempt === undefined
    ? ""
    : `, ${attempt} = least(greatest(coalesce(t.${attempt}, 1), 1), ${columns.highestAttempt}) + 1`;
  return parameters.statement(`WITH expired AS MATERIALIZED (
  SELECT ${id} AS id FROM ${table} WHERE ${lockedUntil} <= ${now}
  ORDER BY ${lockedUntil}, ${id} LIMIT ${limit} FOR UPDATE SKIP LOCKED
), free AS MATERIALIZED (
  SELECT ${id} AS id FROM ${table} WHERE ${lockedUntil} IS NULL
  ORDER BY ${id} LIMIT greatest(0, ${limit} - (SELECT count(*) FROM expired))
  FOR UPDATE SKIP LOCKED
), due AS (
  SELECT id, row_number() OVER () AS position
  FROM (SELECT id FROM expired UNION ALL SELECT id FROM free) AS found
), taken AS (
  UPDATE ${table} AS t SET ${lockedUntil} = ${until}${count}
  WHERE t.${id} = ANY (ARRAY(SELECT id FROM due))
  RETURNING t.${id} AS key, t.${id}::text AS id, t.${payload}${payloadCast(columns)} AS payload,
    ${milliseconds(columns, `t.${lockedUntil}`)} AS expiry${
    attempt === undefined ? "" : `, t.${attempt}::text AS attempt`
  }${said}
)
SELECT taken.* FROM taken JOIN due ON due.id = taken.key ORDER BY due.position`);
}

interface ClaimTimes {
  /** What is due now. */
  readonly now: string;
  /** When the lease ends: a whole second. */
  readonly until: string;
  /** What the database's clock says, as one more column. */
  readonly said: string;
}

/** By the database's clock: the statement's own time, which an index can be searched for. */
function databaseTimes(columns: Columns, parameters: Parameters<ClaimValues>): ClaimTimes {
  const seconds = parameters.add(({ leaseSeconds }) => String(leaseSeconds));
  const epoch = "extract(epoch FROM statement_timestamp())";
  const said = `, (${epoch} * 1000)::text AS now`;
  if (columns.countsMilliseconds) {
    return {
      now: `floor(${epoch} * 1000)::bigint`,
      until: `(floor(${epoch})::bigint + 1 + ${seconds}::text::bigint) * 1000`,
      said,
    };
  }
  return {
    now: "statement_timestamp()",
    until: `date_trunc('second', statement_timestamp()) + ` +
      `(1 + ${seconds}::text::int) * interval '1 second'`,
    said,
  };
}

/** By the clock that is given. */
function givenTimes(columns: Columns, parameters: Parameters<ClaimValues>): ClaimTimes {
  const now = parameters.add(({ now }) => columns.encodeTime(now));
  const until = parameters.add((times) => columns.encodeTime(expiryOf(times)));
  return {
    now: columns.cast("lockedUntil", now),
    until: columns.cast("lockedUntil", until),
    said: "",
  };
}

function milliseconds(columns: Columns, time: string): string {
  return columns.countsMilliseconds
    ? `${time}::text`
    : `round(extract(epoch FROM ${time}) * 1000)::text`;
}

/** Bytes cross as they are, everything else as the server's own text. */
function payloadCast(columns: Columns): string {
  return columns.type("payload") === "bytea" ? "" : "::text";
}
