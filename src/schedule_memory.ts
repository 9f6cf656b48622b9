import type { DatabaseName } from "./ddl_text.ts";
import { DeclarationError, DriverError } from "./errors.ts";
import type { RunningBroker } from "./running_broker.ts";
import type { ScheduleTable } from "./schedule_table.ts";
import type { Statement } from "./driver/statement.ts";

interface Slot {
  readonly name: string;
  readonly slot: bigint;
}

/** Remembers the last slot of a schedule in a table that all processes share. */
export class ScheduleMemory {
  readonly #name: string;
  readonly #broker: RunningBroker;
  readonly #insert: Statement<Slot>;
  readonly #advance: Statement<Slot>;
  readonly #read: Statement<Pick<Slot, "name">>;

  readonly #table: ScheduleTable;

  constructor(scheduleTable: ScheduleTable, schedule: string, broker: RunningBroker) {
    const { table, name, lastSlot } = scheduleTable;
    const { placeholder } = broker.dialect;
    this.#table = scheduleTable;
    this.#name = schedule;
    this.#broker = broker;
    this.#insert = {
      text: `INSERT INTO ${table} (${name}, ${lastSlot}) VALUES (${placeholder(1)}, ${
        placeholder(2)
      })`,
      params: [({ name }) => name, ({ slot }) => slot],
    };
    this.#advance = {
      text: `UPDATE ${table} SET ${lastSlot} = ${placeholder(1)} ` +
        `WHERE ${name} = ${placeholder(2)} AND ${lastSlot} < ${placeholder(3)}`,
      params: [({ slot }) => slot, ({ name }) => name, ({ slot }) => slot],
    };
    this.#read = {
      text: `SELECT ${lastSlot} AS last_slot FROM ${table} WHERE ${name} = ${placeholder(1)}`,
      params: [({ name }) => name],
    };
  }

  /**
   * The last slot; `now` for a schedule that is new, which has missed nothing.
   *
   * @throws {DeclarationError} if the table is not there, with the statement that creates it
   */
  async open(now: number): Promise<number> {
    const known = await this.#look();
    if (known !== undefined) return known;
    try {
      await this.#broker.pool.run(this.#insert, { name: this.#name, slot: BigInt(now) });
    } catch (error) {
      // Another process may have been faster.
      if (!(error instanceof DriverError && error.kind === "constraint")) throw error;
    }
    return await this.#last() ?? now;
  }

  /** Takes a slot in a transaction; whether no process has taken it, or a later one, before. */
  async take(slot: number, tx: unknown): Promise<boolean> {
    const { changes } = await this.#broker.openTransaction(tx)
      .run(this.#advance, { name: this.#name, slot: BigInt(slot) });
    return changes === 1;
  }

  async #look(): Promise<number | undefined> {
    try {
      return await this.#last();
    } catch (cause) {
      if (!(cause instanceof DriverError && cause.kind === "missing")) throw cause;
      const create = this.#table.ddl(this.#broker.database.toLowerCase() as DatabaseName);
      throw new DeclarationError(
        `Cannot use the schedule table "${this.#table.table}": ${cause.message}; create it:\n${create}`,
        { cause },
      );
    }
  }

  async #last(): Promise<number | undefined> {
    const { rows: [row] } = await this.#broker.pool.run(this.#read, { name: this.#name });
    return row === undefined ? undefined : Number(row.last_slot);
  }
}
