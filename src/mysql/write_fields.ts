import type { LeaseToken } from "../driver/dialect.ts";
import type { LeaseWrite } from "../driver/lease_writes.ts";
import type { Columns } from "./columns.ts";
import { encodeTime, roundDown, roundUp } from "./encode_time.ts";
import type { Role, TimeRole } from "../driver/roles.ts";

/** A part of a token, or of what is written. */
export interface WriteField<Values> {
  /** The role of the column that it is compared with or written to. */
  readonly role: Role;
  /** Whether it is written; else it belongs to the guard. */
  readonly written: boolean;
  /** Its type in SQL. */
  readonly type: string;
  /** Its value as a parameter. */
  readonly encode: (values: Values) => bigint | string | null;
}

/** All parts of a token and of what is written, by name. */
export type WriteFields<Extra> = Readonly<Record<string, WriteField<LeaseToken & Extra>>>;

/** What a guarded write takes. */
export function fieldsOf<Extra>(columns: Columns, write: LeaseWrite<Extra>): WriteFields<Extra> {
  return { ...guardFields(columns), ...(write === "delete" ? {} : writtenFields(columns, write)) };
}

function guardFields(columns: Columns): WriteFields<unknown> {
  const attempt = ({ attempt }: LeaseToken): bigint => BigInt(attempt ?? 0);
  return {
    id: { role: "id", written: false, type: columns.type("id"), encode: ({ id }) => id },
    ...(columns.attempt === undefined
      ? { expiry: timeField(columns, "lockedUntil", false, ({ expiry }: LeaseToken) => expiry) }
      : { attempt: { role: "attempt", written: false, type: "BIGINT", encode: attempt } }),
    latest: timeField(columns, "lockedUntil", false, ({ latestExpiry }) => latestExpiry),
  };
}

/** A due time is never early, and what is done was not done later. */
function writtenFields<Extra>(
  columns: Columns,
  { until, due, processedAt, error }: Exclude<LeaseWrite<Extra>, "delete">,
): WriteFields<Extra> {
  return {
    ...(until && { until: timeField(columns, "lockedUntil", true, until) }),
    ...(due && {
      due: timeField<LeaseToken & Extra>(
        columns,
        "retryAfter",
        true,
        (values) => roundUp(columns, "retryAfter", due(values)),
      ),
    }),
    ...(processedAt && {
      done: timeField<LeaseToken & Extra>(
        columns,
        "processedAt",
        true,
        (values) => roundDown(columns, "processedAt", processedAt(values)),
      ),
    }),
    ...(error && {
      error: {
        role: "lastError",
        written: true,
        type: columns.type("lastError"),
        encode: (values) => columns.encodeError(error(values)),
      },
    }),
  };
}

function timeField<Values>(
  columns: Columns,
  role: TimeRole,
  written: boolean,
  time: (values: Values) => number,
): WriteField<Values> {
  return {
    role,
    written,
    // To the microsecond, whatever the column keeps.
    type: columns.countsMilliseconds(role) ? "BIGINT" : "DATETIME(6)",
    encode: (values) => encodeTime(columns, role, time(values)),
  };
}
