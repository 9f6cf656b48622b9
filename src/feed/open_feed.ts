import type { FeedStatements, FeedTables, ScopeKey, StoredEvent } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { RunningBroker } from "../running_broker.ts";
import type { EntityState, Snapshot } from "./entity_state.ts";
import type { FeedCodecs } from "./feed_codecs.ts";
import type { FeedEvent } from "./feed_event.ts";
import type { FeedMessage } from "./feed_message.ts";
import { openFeedTables } from "./feed_tables.ts";
import { TenantError } from "./tenant_error.ts";

/** What a feed is made of, beside its database. */
export interface FeedParts<Event, State> {
  readonly tables: FeedTables;
  readonly codecs: FeedCodecs<Event, State>;
  /** Whether tables that are missing are created. */
  readonly createTables: boolean;
}

/** A feed on the database of a running broker: its statements, and what is read by them. */
export class OpenFeed<Event, State> {
  readonly broker: RunningBroker;
  readonly statements: FeedStatements;
  readonly #parts: FeedParts<Event, State>;
  #ready: Promise<void> | undefined;

  constructor(broker: RunningBroker, parts: FeedParts<Event, State>) {
    this.broker = broker;
    this.statements = broker.dialect.feed(parts.tables);
    this.#parts = parts;
  }

  /**
   * Makes sure, once, that the tables are there.
   *
   * @throws {SchemaError} with the statements that create what is missing
   */
  async ready(): Promise<this> {
    const { tables, createTables } = this.#parts;
    const ready = this.#ready ??= openFeedTables(
      this.broker.pool,
      tables,
      this.statements,
      createTables,
    );
    try {
      await ready;
    } catch (error) {
      if (this.#ready === ready) this.#ready = undefined;
      throw error;
    }
    return this;
  }

  /**
   * The number of a scope's last event; 0 if there is no such scope yet.
   *
   * @throws {TenantError} if it belongs to another tenant
   */
  async head({ tenant, scope }: ScopeKey): Promise<number> {
    const [row] = await this.broker.pool.query(this.statements.readScope, { scope });
    if (row === undefined) return 0;
    if (row.tenant === tenant) return Number(row.seq);
    throw new TenantError(
      `Cannot read scope "${scope}" as tenant "${tenant}": it belongs to another tenant`,
    );
  }

  /** Events after a number, in order. */
  async poll(key: ScopeKey, after: number, limit: number): Promise<readonly StoredEvent[]> {
    const { statements, broker: { pool } } = this;
    const rows = await pool.query(statements.poll(limit), { ...key, after });
    return rows.map((row) => statements.readEvent(row));
  }

  /**
   * The event with an id, if it is there.
   *
   * @throws {TenantError} if the scope belongs to another tenant
   */
  async find(key: ScopeKey, id: string): Promise<FeedEvent<Event> | undefined> {
    const [row] = await this.broker.pool.query(this.statements.findEvent, { id });
    if (row === undefined || row.tenant !== key.tenant || row.scope !== key.scope) {
      await this.head(key);
      return undefined;
    }
    const [event] = await this.poll(key, Number(row.seq) - 1, 1);
    return await this.decode(key, event!, "poll");
  }

  /** An entity as it is, if it is there. */
  async entity(key: ScopeKey, entity: string): Promise<EntityState<State> | undefined> {
    const values = { ...key, entity };
    const [row] = await this.broker.pool.query(this.statements.readEntity, values);
    if (row === undefined) await this.head(key);
    return row === undefined || row.state === null ? undefined : await this.#stateOf(entity, row);
  }

  /** A whole scope as it is. */
  async snapshot(key: ScopeKey): Promise<Snapshot<State>> {
    const rows = await this.broker.pool.query(this.statements.snapshot, key);
    // Another tenant's scope has no row here, and is refused.
    if (rows.length === 0) return { seq: await this.head(key), entities: [] };
    const written = rows.filter(({ entity }) => entity !== null);
    const entities = await Promise.all(
      written.map((row) => this.#stateOf(String(row.entity), row)),
    );
    return { seq: Number(rows[0]!.scope_seq), entities };
  }

  /** The event as it is handed on. */
  async decode(
    { tenant, scope }: ScopeKey,
    { seq, id, event, entity, version, createdAt }: FeedMessage,
    source: FeedEvent["source"],
  ): Promise<FeedEvent<Event>> {
    return {
      tenant,
      scope,
      seq,
      id,
      event: await this.#parts.codecs.event.decode(event),
      ...(entity === null ? {} : { entity }),
      ...(version === null ? {} : { version }),
      createdAt: new Date(createdAt),
      source,
    };
  }

  async #stateOf(entity: string, { version, seq, state }: SqlRow): Promise<EntityState<State>> {
    return {
      entity,
      version: Number(version),
      seq: Number(seq),
      state: await this.#parts.codecs.state.decode(String(state)),
    };
  }
}
