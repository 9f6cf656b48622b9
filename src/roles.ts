import type { Form } from "./driver/form.ts";
import type { MessageId } from "./driver/dialect.ts";
import type { OwnStatements } from "./own_statements.ts";
import type { Payload } from "./payload.ts";
import type { Row, RowMessage } from "./row.ts";

/** The role `id` where the service makes the ids itself, not the database. */
export interface IdRole {
  /** The column. */
  readonly column: string;
  /** Makes the id of a new message. It must never make the same one twice. */
  readonly generate: () => MessageId;
}

/** What the columns of a table do for the queue. Each column plays at most one role. */
export interface Roles {
  /** Identifies the row. The database generates it, or `generate` does. */
  readonly id: string | IdRole;
  /**
   * Holds the message: `json`, `text`, `bytes` or `codec`; with `row()` the row itself is the message,
   * typed, as it is without this role.
   */
  readonly payload?: Payload<never, unknown> | RowMessage<never, unknown>;
  /** Text by name that goes with a message, kept as JSON text: `delivery.headers`. */
  readonly headers?: string;
  /** Tells the queues of one table apart: the name of a queue is its group. */
  readonly group?: string;
  /**
   * One row of a group is in work at a time, over all processes, in order of priority and id. Goes
   * with `group`, in the row lock and the lease form.
   */
  readonly fifo?: boolean;
  /** An integer; smaller is claimed first. */
  readonly priority?: string;
  /** The time before which the row is not claimed: for delays, and messages that are scheduled. */
  readonly retryAfter?: string;
  /** The number of the next delivery, 1 for the first. */
  readonly attempt?: string;
  /** A text; messages of one key are handled in order within a subscription, one at a time. */
  readonly partitionKey?: string;
  /**
   * A text of which there is one row at the most, in a group: a publish with a key that is there
   * already inserts nothing, and says so. It holds while the row exists, so that deduplication after
   * an ack needs `processedAt` too. A row that is dead-lettered to a group of its table gives its key
   * up. Needs a unique index, which `ddl()` has.
   */
  readonly uniqueKey?: string;
  /** The message of the last failure: text without NULs, cut to the column and to 10,000 characters. */
  readonly lastError?: string;
  /** When the message was done. With it ack and drop mark the row, and do not delete it. */
  readonly processedAt?: string;
  /** When the lease of the row's holder ends. With it the table is in the lease form. */
  readonly lockedUntil?: string;
}

/** What holds for a described table as a whole. */
export interface InboxOptions {
  /**
   * Selects the advisory lock form: the key of a row's lock, in which a column in braces stands for
   * the row's value of it. `"accounts-{account_id}"` handles one message of an account at a time,
   * `"jobs-{id}"` holds each row alone. Queues with the same key share one lock in a database. NULL
   * stands as empty text. The columns must keep their values while a row is in work: with another key
   * it would be another's to claim.
   */
  readonly advisoryLock?: string;
  /**
   * Whose clock decides what is due. Default `"database"` on Postgres, MySQL and MariaDB; SQLite,
   * which is in the process, has none but the host's.
   */
  readonly clock?: "database" | "host";
  /** The service's own SQL for single events; what is not given stays built in. */
  readonly statements?: OwnStatements;
}

/** The roles as declared, or, where they cannot work, the reason in place of their type. */
export type CheckedRoles<R, Table extends string, O = NoOptions> =
  Exclude<keyof R, keyof Roles> extends never ? CheckedForm<R, Table, O>
    : `${
      & Exclude<keyof R, keyof Roles>
      & string} is not a role: describe "${Table}" with id, payload, headers, group, fifo, partitionKey, priority, retryAfter, attempt, processedAt, lockedUntil, uniqueKey, lastError`;

/** The roles, or, where they do not go together or with the form, the reason. */
export type CheckedForm<R, Table extends string, O> = O extends { readonly advisoryLock: string }
  ? R extends { readonly lockedUntil: string }
    ? `"${Table}" cannot have two forms: take away the role lockedUntil (lease form) or the option advisoryLock`
  : R extends { readonly fifo: true }
    ? `"${Table}" cannot be fifo in the advisory lock form: take away fifo, and give all rows of a group one key, or give it the role lockedUntil in place of the option advisoryLock`
  : R
  : R extends { readonly fifo: true } ? R extends { readonly group: string } ? R
    : `"${Table}" cannot be fifo without groups: give it the role group`
  : R;

/** The options as declared, or, where one does not exist, the reason in place of their type. */
export type CheckedInboxOptions<O, Table extends string> =
  Exclude<keyof O, keyof InboxOptions> extends never ? O
    : `${
      & Exclude<keyof O, keyof InboxOptions>
      & string} is not an option of "${Table}": options are advisoryLock, clock, statements`;

/** No options at all. */
export type NoOptions = Record<never, never>;

/** What is published to a table with these roles. */
export type MessageIn<R> = R extends { readonly payload: Payload<infer In, infer _Out> } ? In
  : R extends { readonly payload: RowMessage<infer In, infer _Out> } ? In
  : "payload" extends keyof R ? never
  : Row;

/** What a handler gets from a table with these roles. */
export type MessageOut<R> = R extends { readonly payload: Payload<infer _In, infer Out> } ? Out
  : R extends { readonly payload: RowMessage<infer _In, infer Out> } ? Out
  : "payload" extends keyof R ? unknown
  : Row;

/** The form of a table with these roles; any form where they are only known when the program runs. */
export type FormOf<R, O = NoOptions> = O extends { readonly advisoryLock: string } ? "advisory lock"
  : "advisoryLock" extends keyof O ? Form
  : R extends { readonly lockedUntil: string } ? "lease"
  : "lockedUntil" extends keyof R ? Form
  : "row lock";

/** The type of `delivery.attempt` of a table with these roles. */
export type AttemptOf<R> = R extends { readonly attempt: string } ? number
  : "attempt" extends keyof R ? number | undefined
  : undefined;
