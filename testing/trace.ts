import type { AppEvent, DeliveryRecord, PublishRecord } from "../src/runtime.ts";

/** What happens in a test app: what happens in every app, and the faults that the test makes. */
export type TraceEvent =
  | AppEvent
  | { readonly type: "crashed" }
  | {
    readonly type: "disconnected";
    /** Until when the database cannot be reached, in milliseconds since 1970, if it cannot. */
    readonly until: number | undefined;
  };

/** One thing that happened in a test app, and when. */
export interface TraceEntry {
  /** Milliseconds since the test app started, on its clock. */
  readonly elapsed: number;
  /** What happened. */
  readonly event: TraceEvent;
  /** The delivery whose handler did it, on virtual time; `undefined` for all else. */
  readonly by?: string;
  /** Whether that handler had ended before. */
  readonly isLate?: boolean;
}

/** What happened in a test app, in order. */
export class Trace {
  readonly #entries: TraceEntry[] = [];

  /** All of it. */
  get entries(): readonly TraceEntry[] {
    return this.#entries;
  }

  /** Adds what happened now. */
  add(entry: TraceEntry): void {
    this.#entries.push(entry);
  }

  /** A line for each entry, for people; also what two runs are compared by. */
  toString(): string {
    if (this.#entries.length === 0) return "(nothing happened)";
    return this.#entries
      .map((entry) => `+${(entry.elapsed / 1000).toFixed(3)} s  ${describe(entry)}`)
      .join("\n");
  }
}

function describe({ event, by, isLate }: TraceEntry): string {
  switch (event.type) {
    case "published":
      return describePublish(event.publish, isLate ? `${by} after its handler had ended` : by);
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
    case "refused":
      return `${event.queue}: refused the handler of ${event.id}: ${event.error}`;
    case "crashed":
      return "the app crashed";
    case "disconnected":
      return event.until === undefined
        ? "the app was disconnected"
        : `the app was disconnected until ${new Date(event.until).toISOString()}`;
  }
}

function describePublish(
  { queue, id, fate, isOutside }: PublishRecord,
  by: string | undefined,
): string {
  const whose = by === undefined ? "" : ` by ${by}`;
  const end = fate === "committed" ? "" : ` (${FATES[fate]})`;
  const outside = isOutside
    ? " (outside the transaction of its delivery, unlike delivery.publish)"
    : "";
  return `${queue}: published ${id}${whose}${outside}${end}`;
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

const FATES: Readonly<Record<Exclude<PublishRecord["fate"], "committed">, string>> = {
  open: "not committed yet",
  "rolled back": "rolled back",
  unknown: "in a transaction of the caller's",
};
