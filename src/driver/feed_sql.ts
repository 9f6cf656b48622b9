import type { SqlRow, SqlValue } from "./driver.ts";
import type {
  CountingUpdate,
  EntityKey,
  EventsAfter,
  FeedStatements,
  FeedTables,
  NewEvent,
  NewState,
  PollPlan,
  ScopeKey,
  StoredEvent,
} from "./feed_statements.ts";
import { type Sql, sql } from "./sql.ts";

/** What of a feed's SQL differs from database to database. Placeholders are `?`. */
export interface FeedSyntax {
  /** `table` or `schema.table` as an identifier. */
  quoteTable(table: string): string;
  /** Whether an UPDATE can return what it has written. */
  readonly returns: boolean;
  /** What locks the row that a SELECT reads, and lets it read what is committed. */
  readonly forUpdate: string;
  /** What follows an INSERT that adds nothing where a unique key is taken. */
  readonly unlessThere: string;
  /** Declarations of columns. */
  readonly types: {
    /** Text of up to 190 characters, compared by its bytes. */
    readonly name: string;
    /** Text of any length. */
    readonly text: string;
    /** A time, in milliseconds or finer. */
    readonly time: string;
  };
  /** What follows the columns of a CREATE TABLE. */
  readonly tableOptions: string;
  /** A time, in milliseconds since 1970, as a value of its column. */
  encodeTime(time: number): SqlValue;
  /** The column as it is read. */
  readonly readTime: (column: string) => string;
  /** The time that was read, in milliseconds since 1970. */
  decodeTime(value: SqlValue): number;
  /** Begins a statement that explains another. */
  readonly explain: string;
  /** The plan that was told; the table is the one of the events. */
  readPlan(rows: readonly SqlRow[], events: string): PollPlan;
}

/** The statements of a feed. */
export function feedSql(tables: FeedTables, syntax: FeedSyntax): FeedStatements {
  const { quoteTable, returns, forUpdate, unlessThere } = syntax;
  const [scopes, events, entities] = [tables.scopes, tables.events, tables.entities]
    .map(quoteTable) as [string, string, string];
  const counting = <V>(update: Sql<V>, read: Sql<V>, column: string): CountingUpdate<V> =>
    returns ? { update: sql`${update} RETURNING ${column} AS value` } : { update, read };
  const poll = (limit: number): Sql<EventsAfter> =>
    sql`SELECT tenant, scope, seq, id, entity, version, event, ${
      syntax.readTime("created_at")
    } AS created_at FROM ${events} WHERE ${ofScope()} AND seq > ${({ after }) => after} ${
      "ORDER BY seq LIMIT " + Math.trunc(limit)
    }`;
  return {
    ddl: ddl(tables, syntax),
    probe: {
      scopes: sql<void>`SELECT tenant, scope, seq FROM ${scopes} WHERE 1 = 0`,
      events: sql<
        void
      >`SELECT tenant, scope, seq, id, entity, version, event, created_at FROM ${events} WHERE 1 = 0`,
      entities: sql<
        void
      >`SELECT tenant, scope, entity, version, seq, state FROM ${entities} WHERE 1 = 0`,
    },
    takeSeq: counting<ScopeKey>(
      sql`UPDATE ${scopes} SET seq = seq + 1 WHERE ${ofScope()}`,
      sql`SELECT seq AS value FROM ${scopes} WHERE ${ofScope()}`,
      "seq",
    ),
    addScope: sql`INSERT INTO ${scopes} (tenant, scope, seq) VALUES (${({ tenant }) => tenant}, ${(
      { scope },
    ) => scope}, 0) ${unlessThere}`,
    giveBackSeq: sql`UPDATE ${scopes} SET seq = seq - 1 WHERE ${ofScope()}`,
    readScope: sql`SELECT tenant, seq FROM ${scopes} WHERE scope = ${({ scope }) => scope}`,
    findEvent: sql`SELECT tenant, scope, seq, version FROM ${events} WHERE id = ${({ id }) => id}`,
    insertEvent: insertEvent(events, syntax),
    readVersion: sql`SELECT version FROM ${entities} WHERE ${ofEntity()}${forUpdate}`,
    updateEntity: counting<NewState>(
      sql`UPDATE ${entities} SET version = version + 1, seq = ${({ seq }) => seq}, state = ${(
        { state },
      ) => state} WHERE ${ofEntity()}`,
      sql`SELECT version AS value FROM ${entities} WHERE ${ofEntity()}`,
      "version",
    ),
    insertEntity:
      sql`INSERT INTO ${entities} (tenant, scope, entity, version, seq, state) VALUES (${(
        { tenant },
      ) => tenant}, ${({ scope }) => scope}, ${({ entity }) => entity}, 1, ${({ seq }) => seq}, ${(
        { state },
      ) => state})`,
    readEntity: sql`SELECT version, seq, state FROM ${entities} WHERE ${ofEntity()}`,
    snapshot: sql`SELECT s.seq AS scope_seq, e.entity, e.version, e.seq, e.state FROM ${scopes} s ${
      "LEFT JOIN " + entities
    } e ON e.tenant = s.tenant AND e.scope = s.scope AND e.state IS NOT NULL WHERE s.tenant = ${(
      { tenant },
    ) => tenant} AND s.scope = ${({ scope }) => scope} ORDER BY e.entity`,
    poll,
    readEvent: (row) => readEvent(row, syntax),
    explain: (limit) => sql`${syntax.explain} ${poll(limit)}`,
    readPlan: (rows) => syntax.readPlan(rows, tables.events),
  };
}

function ddl(
  tables: FeedTables,
  { quoteTable, types: { name, text, time }, tableOptions }: FeedSyntax,
): FeedStatements["ddl"] {
  const create = (table: string, ...lines: readonly string[]): string =>
    `CREATE TABLE ${quoteTable(table)} (\n  ${lines.join(",\n  ")}\n)${tableOptions}`;
  return {
    scopes: create(
      tables.scopes,
      `scope ${name} NOT NULL PRIMARY KEY`,
      `tenant ${name} NOT NULL`,
      `seq BIGINT NOT NULL`,
    ),
    events: create(
      tables.events,
      `tenant ${name} NOT NULL`,
      `scope ${name} NOT NULL`,
      `seq BIGINT NOT NULL`,
      `id ${name} NOT NULL UNIQUE`,
      `entity ${name}`,
      `version BIGINT`,
      `event ${text} NOT NULL`,
      `created_at ${time} NOT NULL`,
      `PRIMARY KEY (tenant, scope, seq)`,
    ),
    entities: create(
      tables.entities,
      `tenant ${name} NOT NULL`,
      `scope ${name} NOT NULL`,
      `entity ${name} NOT NULL`,
      `version BIGINT NOT NULL`,
      `seq BIGINT NOT NULL`,
      `state ${text}`,
      `PRIMARY KEY (tenant, scope, entity)`,
    ),
  };
}

function insertEvent(events: string, { encodeTime }: FeedSyntax): Sql<NewEvent> {
  return sql`INSERT INTO ${events} ${"(tenant, scope, seq, id, entity, version, event, created_at)"} ${"VALUES ("}${(
    { tenant },
  ) => tenant}, ${({ scope }) => scope}, ${({ seq }) => seq}, ${({ id }) => id}, ${({ entity }) =>
    entity}, ${({ version }) => version}, ${({ event }) => event}, ${({ createdAt }) =>
    encodeTime(createdAt)})`;
}

function readEvent(row: SqlRow, { decodeTime }: FeedSyntax): StoredEvent {
  return {
    tenant: String(row.tenant),
    scope: String(row.scope),
    seq: Number(row.seq),
    id: String(row.id),
    entity: row.entity === null ? null : String(row.entity),
    version: row.version === null ? null : Number(row.version),
    event: String(row.event),
    createdAt: decodeTime(row.created_at ?? null),
  };
}

function ofScope<Values extends ScopeKey>(): Sql<Values> {
  return sql`tenant = ${({ tenant }) => tenant} AND scope = ${({ scope }) => scope}`;
}

function ofEntity<Values extends EntityKey>(): Sql<Values> {
  return sql`${ofScope<Values>()} AND entity = ${({ entity }) => entity}`;
}
