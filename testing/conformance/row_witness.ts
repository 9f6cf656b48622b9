import { DatabaseSync } from "node:sqlite";

/** A claim as the database saw it. */
export interface WitnessedClaim {
  readonly id: string;
  readonly attempt: number;
  /** In milliseconds since 1970. */
  readonly time: number;
}

/** What a SQLite file itself sees of the suite's table, by triggers the library knows nothing of. */
export class RowWitness implements Disposable {
  readonly #database: DatabaseSync;

  constructor(path: string) {
    this.#database = new DatabaseSync(path, { timeout: 10_000 });
    this.#database.exec(TRIGGERS);
  }

  /** How many rows are left. */
  rowsLeft(): number {
    return Number(this.#database.prepare("SELECT count(*) AS count FROM jobs").get()!.count);
  }

  /** The id of each row that was deleted, as often as it was. */
  acked(): readonly string[] {
    return this.#database.prepare("SELECT id FROM acked").all().map(({ id }) => String(id));
  }

  /** Every claim, in the order in which they were made. */
  claims(): readonly WitnessedClaim[] {
    return this.#database.prepare("SELECT id, attempt, time FROM claimed ORDER BY rowid").all()
      .map(({ id, attempt, time }) => ({
        id: String(id),
        attempt: Number(attempt),
        time: Number(time),
      }));
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}

/** The column `attempt` holds the number of the next delivery. */
const TRIGGERS = `
  CREATE TABLE acked (id INTEGER NOT NULL);
  CREATE TABLE claimed (id INTEGER NOT NULL, attempt INTEGER NOT NULL, time REAL NOT NULL);
  CREATE TRIGGER ack AFTER DELETE ON jobs BEGIN
    INSERT INTO acked VALUES (OLD.id);
  END;
  CREATE TRIGGER claim AFTER UPDATE OF attempt ON jobs WHEN NEW.attempt > OLD.attempt BEGIN
    INSERT INTO claimed
    VALUES (OLD.id, OLD.attempt, round((julianday('now') - 2440587.5) * 86400000));
  END;
`;
