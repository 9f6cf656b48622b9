import { type DatabaseName, ddlText } from "./ddl_text.ts";
import type { MessageId, TableDescription } from "./driver/dialect.ts";
import type { Form } from "./driver/form.ts";
import { DeclarationError } from "./errors.ts";
import { parseLockKey } from "./lock_key.ts";
import { checkStatements, type OwnStatements } from "./own_statements.ts";
import type { Payload } from "./payload.ts";
import { row, type RowMessage } from "./row.ts";
import { declareQueue, type Queue } from "./queue.ts";
import { refuseUnknownOptions } from "./refuse_unknown_options.ts";
import type {
  AttemptOf,
  CheckedInboxOptions,
  CheckedRoles,
  FormOf,
  IdRole,
  InboxOptions,
  MessageIn,
  MessageOut,
  NoOptions,
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
  readonly payload: Payload<In, Out> | RowMessage<In, Out>;
  /** Makes the id of a new message, where the database does not. */
  readonly generateId: (() => MessageId) | undefined;
  /** Whose clock decides what is due. */
  readonly clock: "database" | "host";
  /** The service's own SQL for single events. */
  readonly statements: OwnStatements;
  /**
   * The table as a queue. With the role `group` the name selects the rows of that group; without it
   * the name is a label. It is the table's name unless given.
   */
  queue(name?: string): Queue<In, Out, F, Attempt, Table>;
  /**
   * The statements that create the table and the indexes that its claims need, as text for a
   * migration: each ends with a semicolon and a line break. `Broker.createTables` runs the same.
   *
   * @throws {TypeError} if the database is not one of these
   */
  ddl(database: DatabaseName): string;
}

/** Any inbox at all. */
export type AnyInbox = Inbox<never, unknown>;

/**
 * Describes a table: which column does what for the queue. Nothing is read or written here.
 *
 * The role `lockedUntil` selects the lease form, the option `advisoryLock` the advisory lock form;
 * without either a claim holds its row by a row lock.
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
 * @param options what holds for the table as a whole
 * @throws {DeclarationError} if a role or an option is unknown, a column plays two roles, or what is
 * asked for cannot work together
 */
export function inbox<
  const Table extends string,
  const R extends Roles,
  const O extends InboxOptions = NoOptions,
>(
  table: Table,
  roles: CheckedRoles<R, Table, O>,
  options?: CheckedInboxOptions<O, Table>,
): Inbox<MessageIn<R>, MessageOut<R>, FormOf<R, O>, AttemptOf<R>, Table> {
  const declared: AnyInbox = declareInbox(
    table,
    roles as unknown as Roles,
    options as InboxOptions | undefined,
  );
  return declared as Inbox<MessageIn<R>, MessageOut<R>, FormOf<R, O>, AttemptOf<R>, Table>;
}

function declareInbox(table: string, roles: Roles, options: InboxOptions = {}): AnyInbox {
  checkTable(table);
  checkRoles(table, roles);
  checkOptions(table, options);
  const description = describe(table, roles, options);
  checkTogether(description);
  if (options.statements !== undefined) {
    checkStatements(table, description.form, options.statements);
  }
  const declared: AnyInbox = {
    table,
    form: description.form,
    description,
    payload: roles.payload ?? row<unknown, never>(),
    generateId: typeof roles.id === "string" ? undefined : roles.id.generate,
    clock: options.clock ?? "database",
    statements: options.statements ?? {},
    queue: (name = table) => declareQueue(declared, name),
    ddl: (database) => ddlText(database, description),
  };
  return declared;
}

function describe(
  table: string,
  roles: Roles,
  { advisoryLock }: InboxOptions,
): TableDescription {
  const { id, payload, fifo, lockedUntil } = roles;
  const form = lockedUntil === undefined ? "row lock" : "lease";
  return {
    table,
    form: advisoryLock === undefined ? form : "advisory lock",
    id: typeof id === "string"
      ? { column: id, generatedBy: "database" }
      : { column: id.column, generatedBy: "service" },
    payload: isColumn(payload) ? { column: payload.column, storage: payload.storage } : undefined,
    headers: roles.headers,
    attempt: roles.attempt,
    lockedUntil,
    group: roles.group,
    fifo: fifo ?? false,
    priority: roles.priority,
    retryAfter: roles.retryAfter,
    processedAt: roles.processedAt,
    partitionKey: roles.partitionKey,
    uniqueKey: roles.uniqueKey,
    lastError: roles.lastError,
    lockKey: advisoryLock === undefined ? undefined : parseLockKey(table, advisoryLock),
  };
}

/** A claim and its settle write these, and the key of a row must not change while it is locked. */
function checkLockKey({ table, lockKey = [], ...roles }: TableDescription): void {
  for (const part of lockKey) {
    const role = (["attempt", "retryAfter", "processedAt", "lastError"] as const).find((role) =>
      typeof part !== "string" && roles[role]?.toLowerCase() === part.column.toLowerCase()
    );
    if (role === undefined) continue;
    throw new DeclarationError(
      `Cannot lock rows of "${table}" by the column of the role ${role}, which Holdfast writes while ` +
        `the row is locked: name a column that keeps its value, such as the id`,
    );
  }
}

/** What the types refuse is refused for plain JavaScript as well. */
function checkTogether(description: TableDescription): void {
  const { table, form, lockedUntil, fifo, group } = description;
  checkLockKey(description);
  if (form === "advisory lock" && lockedUntil !== undefined) {
    throw new DeclarationError(
      `"${table}" cannot have two forms: take away the role lockedUntil (lease form) ` +
        `or the option advisoryLock`,
    );
  }
  if (form === "advisory lock" && fifo) {
    throw new DeclarationError(
      `"${table}" cannot be fifo in the advisory lock form: take away fifo, and give all rows of a ` +
        `group one key, or give it the role lockedUntil in place of the option advisoryLock`,
    );
  }
  if (fifo && group === undefined) {
    throw new DeclarationError(`"${table}" cannot be fifo without groups: give it the role group`);
  }
}

function checkOptions(table: string, options: InboxOptions): void {
  if (typeof options !== "object" || options === null) {
    throw new DeclarationError(
      `Cannot describe "${table}" with ${
        describeValue(options)
      } as options: give an object or none`,
    );
  }
  refuseUnknownOptions(`Cannot describe "${table}"`, options, OPTIONS);
  const { clock } = options;
  if (clock === undefined || clock === "database" || clock === "host") return;
  throw new DeclarationError(
    `Cannot describe "${table}" with the clock ${describeValue(clock)}: give "database" or "host"`,
  );
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
  const { id, payload, fifo } = roles;
  if (payload !== undefined && !isColumn(payload) && !isRow(payload)) {
    throw new DeclarationError(
      `Cannot describe "${table}": the role payload is ${describeValue(payload)}; ` +
        `give json("column"), text("column"), bytes("column"), codec("column", …) or row()`,
    );
  }
  if (fifo !== undefined && typeof fifo !== "boolean") {
    throw new DeclarationError(
      `Cannot describe "${table}": fifo is ${
        describeValue(fifo)
      }; give true, beside the role group`,
    );
  }
  return [
    ["id", isIdRole(id) ? id.column : id],
    ...(isColumn(payload) ? [["payload", payload.column] as const] : []),
    ...COLUMN_ROLES.map((role) => [role, roles[role]] as const)
      .filter(([, column]) => column !== undefined),
  ];
}

function isColumn(payload: Roles["payload"]): payload is Payload<never, unknown> {
  const { encode, decode } = Object(payload) as Partial<Payload<never, unknown>>;
  return typeof encode === "function" && typeof decode === "function";
}

function isRow(payload: Roles["payload"]): payload is RowMessage<never, unknown> {
  const { encodeRow, decodeRow } = Object(payload) as Partial<RowMessage<never, unknown>>;
  return typeof encodeRow === "function" && typeof decodeRow === "function";
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

/** The roles that are no more than the name of a column. */
const COLUMN_ROLES = [
  "headers",
  "partitionKey",
  "uniqueKey",
  "lastError",
  "group",
  "priority",
  "retryAfter",
  "attempt",
  "processedAt",
  "lockedUntil",
] as const;
const ROLES: readonly string[] = ["id", "payload", "fifo", ...COLUMN_ROLES];
const OPTIONS: readonly string[] = ["advisoryLock", "clock", "statements"];
