import { DriverError } from "../errors.ts";

/**
 * Lets one writer at a time through, in order of arrival. SQLite has one writer per database; two
 * connections of one process would otherwise meet as BUSY, and waiting for it inside SQLite would
 * block the event loop that has to release the lock.
 */
export class WriterGate {
  #closed = false;
  readonly #waiting: (() => void)[] = [];

  /** How many wait to enter. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves when the caller is the only one inside. Call `leave` afterwards, always. */
  enter(): Promise<void> {
    if (this.#closed) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#closed = true;
    return Promise.resolve();
  }

  /** Lets the next one in. */
  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#closed = false;
    else next();
  }
}

/** Shares one gate among all connections of this process to one file. */
export function shareGate(file: string, library: string): WriterGate {
  const shared = gates.get(file) ?? { gate: new WriterGate(), library, users: 0 };
  if (shared.library !== library) {
    throw new DriverError(
      "unusable",
      `Cannot open ${JSON.stringify(file)} with ${library}: this process has it open with ` +
        `${shared.library}, and two SQLite libraries in one process do not see each other's ` +
        `locks; use one library for it`,
    );
  }
  shared.users++;
  gates.set(file, shared);
  return shared.gate;
}

/** Gives a share back. */
export function unshareGate(file: string): void {
  const shared = gates.get(file);
  if (shared !== undefined && --shared.users === 0) gates.delete(file);
}

const gates = new Map<string, { gate: WriterGate; library: string; users: number }>();
