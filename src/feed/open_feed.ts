import type { FeedStatements, FeedTables, ScopeKey, StoredEvent } from "../driver/dialect.ts";
import type { RunningBroker } from "../running_broker.ts";
import { TenantError } from "./tenant_error.ts";

/** What a feed reads of its tables while its broker is open. */
export class OpenFeed {
  readonly broker: RunningBroker;
  readonly statements: FeedStatements;

  /** On the database of a running broker. */
  constructor(broker: RunningBroker, tables: FeedTables) {
    this.broker = broker;
    this.statements = broker.dialect.feed(tables);
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
}
