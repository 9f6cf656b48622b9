import type {
  AdvisoryLockStatements,
  Candidate,
  Dialect,
  GuardedWrite,
  LeaseStatements,
  MessageId,
  NewRow,
  OwnFetch,
  PublishStatement,
  RowAt,
  RowLockStatements,
  SessionWrites,
  TableDescription,
  TableFacts,
} from "./driver/dialect.ts";
import type { SqlRow, SqlValue } from "./driver/driver.ts";
import { columnNames, type TimeRole } from "./driver/roles.ts";
import type { Statement } from "./driver/statement.ts";
import { DeclarationError } from "./errors.ts";
import { type OwnStatements, piecesOf } from "./own_statements.ts";

/** What the values of statements are made from: all of it may be there, or little. */
interface Given {
  readonly id?: MessageId;
  readonly now?: number;
  readonly limit?: number;
  readonly attempt?: number | undefined;
  readonly expiry?: number;
  readonly latestExpiry?: number;
  readonly until?: number;
  readonly delay?: number;
  readonly error?: string | undefined;
  readonly key?: string | null;
}

/** Puts a service's own statements in the place of those that are built in. */
export class ByHand {
  readonly #own: OwnStatements;
  readonly #dialect: Dialect;
  readonly #table: TableDescription;
  readonly #facts: TableFacts;
  readonly #group: string | undefined;

  constructor(
    own: OwnStatements,
    dialect: Dialect,
    table: TableDescription,
    facts: TableFacts,
    group: string | undefined,
  ) {
    this.#own = own;
    this.#dialect = dialect;
    this.#table = table;
    this.#facts = facts;
    this.#group = group;
  }

  /** The statements of the row lock form. */
  rowLock(built: RowLockStatements): RowLockStatements {
    const { claim, fetch } = this.#own;
    return {
      ...built,
      ...this.#endings(),
      ...(claim === undefined ? {} : {
        find: { first: [], each: [this.#statement(claim)] },
        read: (row) => built.read(this.#aliased(row, "claim")),
      }),
      ...(fetch === undefined ? {} : { fetch: this.#fetch(fetch) }),
    };
  }

  /** The statements of the lease form: the built-in claim takes what the service's own has found. */
  lease(built: LeaseStatements): LeaseStatements {
    const { claim, fetch, ack, drop, retry, retryAfter, renew, deadLetter } = this.#own;
    const write = <Extra>(sql: string | undefined): GuardedWrite<Extra> | undefined =>
      sql === undefined ? undefined : { one: this.#statement(sql) };
    const { claim: plan } = built;
    return {
      ...built,
      ...defined({
        remove: write(ack),
        drop: write(drop),
        free: write(retry),
        delay: write(retryAfter),
        renew: write(renew),
        bury: deadLetter === undefined ? undefined : [this.#statement(deadLetter)],
        fetch: fetch === undefined ? undefined : this.#fetch(fetch),
      }),
      ...(claim === undefined ? {} : {
        claim: {
          kind: "find, then take" as const,
          find: { first: [], each: [this.#statement(claim)] },
          take: plan.take,
          ...(plan.kind === "at once" ? {} : { fetch: plan.fetch }),
        },
        readId: (row) => built.readId(this.#withId(row)),
      }),
    };
  }

  /** The statements of the advisory lock form: what the service's own claim finds is one page. */
  advisoryLock(built: AdvisoryLockStatements): AdvisoryLockStatements {
    const { claim, fetch, lock, unlock } = this.#own;
    return {
      ...built,
      ...this.#endings(),
      ...(claim === undefined ? {} : {
        candidates: { first: [], each: [{ first: this.#statement(claim), next: NOTHING }] },
        readCandidate: (row): Candidate => {
          const { id } = built.readCandidate(this.#aliased(row, "claim"));
          return { id, key: this.#keyOf(row), due: null, held: false };
        },
      }),
      ...(fetch === undefined ? {} : { fetch: this.#fetch(fetch) }),
      ...(lock === undefined || unlock === undefined
        ? {}
        : { ownLock: { lock: this.#statement(lock), unlock: this.#statement(unlock) } }),
    };
  }

  /** How messages are published. */
  publish(built: PublishStatement): PublishStatement {
    const { publish } = this.#own;
    if (publish === undefined) return built;
    const { id } = columnNames(this.#table);
    const { table, id: { generatedBy } } = this.#table;
    if (
      generatedBy === "database" && built.lastId === undefined && !/\breturning\b/i.test(publish)
    ) {
      throw new DeclarationError(
        `Cannot publish to "${table}" by its own statement, which does not return the id: ` +
          `end it with RETURNING ${id}`,
      );
    }
    return {
      ...built,
      insert: this.#compile<NewRow>(publish, {
        id: ({ id }) => id ?? null,
        payload: ({ payload }) => payload,
        headers: ({ headers }) => headers,
        group: ({ group }) => group,
        key: ({ key }) => key,
        uniqueKey: ({ uniqueKey }) => uniqueKey,
        priority: ({ priority }) => priority,
        now: ({ now }) => this.#time("retryAfter", now),
        due: ({ at, now, delay }) => this.#time("retryAfter", at ?? now + delay),
      }),
      insertMany: undefined,
      readId: (row) => built.readId({ id: row[id!] ?? row.id ?? null }),
    };
  }

  #endings<At extends RowAt>(): Partial<SessionWrites<At>> {
    const { ack, drop, retry, retryAfter, deadLetter } = this.#own;
    const write = <Values>(sql: string | undefined): Statement<Values> | undefined =>
      sql === undefined ? undefined : this.#statement(sql);
    return defined({
      remove: write(ack),
      drop: write(drop),
      free: write(retry),
      delay: write(retryAfter),
      bury: deadLetter === undefined ? undefined : [this.#statement(deadLetter)],
    }) as Partial<SessionWrites<At>>;
  }

  #fetch(sql: string): OwnFetch {
    return { statement: this.#statement(sql), alias: (row) => this.#aliased(row, "fetch") };
  }

  /** A statement of a claimed row, or of a claim. */
  #statement<Values>(sql: string): Statement<Values> {
    // An advisory claim tells the number of the delivery, and has counted it already.
    const counted = this.#table.form === "advisory lock" ? 1n : 0n;
    return this.#compile<Given>(sql, {
      id: ({ id }) => id ?? null,
      limit: ({ limit = 1 }) => BigInt(limit),
      group: () => this.#group ?? null,
      key: ({ key }) => key ?? null,
      attempt: ({ attempt }) => attempt === undefined ? null : BigInt(attempt) + counted,
      error: ({ error }) => error ?? null,
      delay: ({ delay = 0 }) => BigInt(Math.ceil(delay)),
      now: ({ now = 0 }) => this.#time("retryAfter", now),
      due: ({ now = 0, delay = 0 }) => this.#time("retryAfter", now + delay),
      expiry: ({ expiry = 0 }) => this.#time("lockedUntil", expiry),
      latest: ({ latestExpiry = 0 }) => this.#time("lockedUntil", latestExpiry),
      until: ({ until = 0 }) => this.#time("lockedUntil", until),
    }) as Statement<Values>;
  }

  #compile<Values>(
    sql: string,
    values: Readonly<Record<string, (values: Values) => SqlValue>>,
  ): Statement<Values> {
    const params: ((values: Values) => SqlValue)[] = [];
    const text = piecesOf(sql).map(({ text, name }) => {
      if (name === undefined) return text;
      params.push(values[name]!);
      return text + this.#dialect.placeholder(params.length);
    });
    return { text: text.join(""), params };
  }

  #time(role: TimeRole, time: number): SqlValue {
    return this.#dialect.encodeTime(this.#table, this.#facts, role, time);
  }

  /** A row under the names that built-in statements give to its columns. */
  #aliased(row: SqlRow, statement: "claim" | "fetch"): SqlRow {
    const names = columnNames(this.#table);
    this.#demand(row, statement, statement === "claim" ? names.id : names.payload);
    const roles = {
      id: names.id,
      payload: names.payload,
      attempt: names.attempt,
      headers: names.headers,
      partition_key: names.partitionKey,
    };
    const aliased = Object.entries(roles).flatMap(([alias, name]) =>
      name === undefined ? [] : [[alias, row[name] ?? null] as const]
    );
    const whole = Object.entries(row).map(([name, value]) => [`row.${name}`, value] as const);
    return Object.fromEntries([...aliased, ...whole]);
  }

  /** Rows that the built-in statements have written name the id in their own way. */
  #withId(row: SqlRow): SqlRow {
    const { id } = columnNames(this.#table);
    if ("id" in row) return row;
    this.#demand(row, "claim", id);
    return { id: row[id!]! };
  }

  /** What a statement leaves out could only be taken for NULL. */
  #demand(row: SqlRow, statement: "claim" | "fetch", column: string | undefined): void {
    if (column === undefined || column in row) return;
    throw new DeclarationError(
      `Cannot use the statement ${statement} of "${this.#table.table}": it returns ` +
        `${Object.keys(row).join(", ")}, but not the column "${column}"`,
    );
  }

  #keyOf(row: SqlRow): string {
    const parts = this.#table.lockKey ?? [];
    for (const part of parts) {
      if (typeof part !== "string") this.#demand(row, "claim", part.column);
    }
    return parts.map((part) => typeof part === "string" ? part : String(row[part.column] ?? ""))
      .join("");
  }
}

/** Without those that are `undefined`, which would take the place of what is built in. */
function defined<T extends object>(values: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as { [K in keyof T]?: NonNullable<T[K]> };
}

const NOTHING: Statement<unknown> = {
  text: "SELECT 1 AS id FROM (SELECT 1 AS one) AS none WHERE 1 = 0",
  params: [],
};
