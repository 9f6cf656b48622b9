import type { MessageId, TableDescription } from "./driver/dialect.ts";
import type { Form } from "./driver/form.ts";
import { DeclarationError } from "./errors.ts";
import type { Payload } from "./payload.ts";
import { declareQueue, type Queue } from "./queue.ts";
import type {
  AttemptOf,
  CheckedRoles,
  FormOf,
  IdRole,
  MessageIn,
  MessageOut,
  Roles,
} from "./roles.ts";

/**
 * A described table. Made by `inbox`.
 *
 * @typeParam In what is published
 * @typeParam Out what a handler gets
 * @typeParam F how a claim holds a row
 * @typeParam Attempt the type of `delivery.attempt`
 * @typeParam Table the table's name
 */
export interface Inbox<
  in In,
  out Out = In,
  out F extends Form = Form,
  out Attempt extends number | undefined = number | undefined,
  out Table extends string = string,
> {
  /** The table, `"table"` or `"schema.table"`. */
  readonly table: Table;
  /** How a claim holds a row. */
  readonly form: F;
  /** The table as drivers see it. */
  readonly description: TableDescription;
  /** How messages get into the payload column and out of it. */
  readonly payload: Payload<In, Out>;
  /** Makes the id of a new message, where the database does not. */
  readonly generateId: (() => MessageId) | undefined;
  /**
   * The table as a queue. The name is a label, and the table's name unless given.
   */
  queue(name?: string): Queue<In, Out, F, Attempt, Table>;
}

/** Any inbox at all. */
export type AnyInbox = Inbox<never, unknown>;

/**
 * Describes a table: which column does what for the queue. Nothing is read or written here.
 *
 * The role `lockedUntil` selects the lease form; without it a claim holds its row by a row lock.
 *
 * ```ts
 * import { inbox, json } from "@holdfast/inbox";
 *
 * const reportJobs = inbox("report_jobs", {
 *   id: "id",
 *   attempt: "attempt",
 *   lockedUntil: "locked_until",
 *   payload: json<{ pages: number }>("payload"),
 * });
 * const reports = reportJobs.queue("reports");
 * ```
 *
 * @param table `"table"` or `"schema.table"`
 * @param roles the column of each role
 * @throws {DeclarationError} if a role is unknown, or a column plays two
 */
export function inbox<const Table extends string, const R extends Roles>(
  table: Table,
  roles: CheckedRoles<R, Table>,
): Inbox<MessageIn<R>, MessageOut<R>, FormOf<R>, AttemptOf<R>, Table> {
  const declared: AnyInbox = declareInbox(table, roles as unknown as Roles);
  return declared as Inbox<MessageIn<R>, MessageOut<R>, FormOf<R>, AttemptOf<R>, Table>;
}

function declareInbox(table: string, roles: Roles): AnyInbox {
  checkTable(table);
  checkRoles(table, roles);
  const description = describe(table, roles);
  const declared: AnyInbox = {
    table,
    form: description.form,
    description,
    payload: roles.payload,
    generateId: typeof roles.id === "string" ? undefined : roles.id.generate,
    queue: (name = table) => declareQueue(declared, name),
  };
  return declared;
}

function describe(table: string, roles: Roles): TableDescription {
  const { id, payload, attempt, lockedUntil } = roles;
  return {
    table,
    form: lockedUntil === undefined ? "row lock" : "lease",
    id: typeof id === "string"
      ? { column: id, generatedBy: "database" }
      : { column: id.column, generatedBy: "service" },
    payload: { column: payload.column, storage: payload.storage },
    attempt,
    lockedUntil,
  };
}

function checkTable(table: string): void {
  if (typeof table === "string" && /^[^.]+(\.[^.]+)?$/.test(table)) return;
  throw new DeclarationError(
    `Cannot describe the table ${JSON.stringify(table)}: give "table" or "schema.table"`,
  );
}

function checkRoles(table: string, roles: Roles): void {
  if (typeof roles !== "object" || roles === null) {
    throw new DeclarationError(`Cannot describe "${table}" without roles: give { id, payload, … }`);
  }
  const unknown = Object.keys(roles).filter((role) => !ROLES.includes(role));
  if (unknown.length > 0) {
    throw new DeclarationError(
      `Cannot describe "${table}": ${unknown.join(", ")} is not a role; roles are ${
        ROLES.join(", ")
      }`,
    );
  }
  checkColumns(table, columnsOf(table, roles));
}

function columnsOf(table: string, roles: Roles): readonly (readonly [string, unknown])[] {
  const { id, payload, attempt, lockedUntil } = roles;
  if (typeof payload?.encode !== "function" || typeof payload.decode !== "function") {
    throw new DeclarationError(
      `Cannot describe "${table}": the role payload is ${describeValue(payload)}; ` +
        `give json("column"), text("column"), bytes("column") or codec("column", …)`,
    );
  }
  return [
    ["id", isIdRole(id) ? id.column : id],
    ["payload", payload.column],
    ...(attempt === undefined ? [] : [["attempt", attempt] as const]),
    ...(lockedUntil === undefined ? [] : [["lockedUntil", lockedUntil] as const]),
  ];
}

function isIdRole(id: string | IdRole): id is IdRole {
  return typeof id === "object" && id !== null && typeof id.generate === "function";
}

function checkColumns(table: string, columns: readonly (readonly [string, unknown])[]): void {
  const roleOf = new Map<string, string>();
  for (const [role, column] of columns) {
    if (typeof column !== "string" || column === "") {
      throw new DeclarationError(
        `Cannot describe "${table}": the role ${role} is ${describeValue(column)}; ` +
          `give the name of its column` +
          (role === "id" ? `, or { column, generate: () => … }` : ""),
      );
    }
    const other = roleOf.get(column.toLowerCase());
    if (other !== undefined) {
      throw new DeclarationError(
        `Cannot describe "${table}": the column "${column}" plays ${other} and ${role}; ` +
          `give each role a column of its own`,
      );
    }
    roleOf.set(column.toLowerCase(), role);
  }
}

function describeValue(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    return `an object with ${Object.keys(value).join(", ") || "nothing in it"}`;
  }
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

const ROLES: readonly string[] = ["id", "payload", "attempt", "lockedUntil"];
