import type { AppEvent, DeliveryRecord } from "../src/runtime.ts";

/** One thing that happened in a test app, and when. */
export interface TraceEntry {
  /** Milliseconds since the test app started, on its clock. */
  readonly elapsed: number;
  /** What happened. */
  readonly event: AppEvent;
}

/** What happened in a test app, in order. */
export class Trace {
  readonly #entries: TraceEntry[] = [];

  /** All of it. */
  get entries(): readonly TraceEntry[] {
    return this.#entries;
  }

  /** Adds what happened now. */
  add(elapsed: number, event: AppEvent): void {
    this.#entries.push({ elapsed, event });
  }

  /** A line for each entry, for people; also what two runs are compared by. */
  toString(): string {
    if (this.#entries.length === 0) return "(nothing happened)";
    return this.#entries
      .map(({ elapsed, event }) => `+${(elapsed / 1000).toFixed(3)} s  ${describe(event)}`)
      .join("\n");
  }
}

function describe(event: AppEvent): string {
  switch (event.type) {
    case "published":
    case "released":
    case "lost":
      return `${event.queue}: ${event.type} ${event.id}`;
    case "claimed":
    case "renewed":
      return `${event.queue}: ${event.type} ${event.ids.join(", ")}`;
    case "started":
      return `${event.delivery.queue}: started ${nameOf(event.delivery)}`;
    case "settled":
      return `${event.delivery.queue}: ${endOf(event.delivery)}`;
  }
}

function nameOf({ id, attempt }: DeliveryRecord): string {
  return attempt === undefined ? String(id) : `${id} (attempt ${attempt})`;
}

function endOf(delivery: DeliveryRecord): string {
  const { outcome, error, settled } = delivery;
  const reason = error === undefined ? "" : `, ${error}`;
  const end = settled ? `settled ${nameOf(delivery)} as` : `did not settle ${nameOf(delivery)} as`;
  return `${end} ${outcome?.kind}${reason}`;
}
