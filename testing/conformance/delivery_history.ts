import type { CrewProcess } from "./crash_crew.ts";
import type { LedgerLine } from "./delivery_ledger.ts";
import type { WitnessedClaim } from "./row_witness.ts";

/** One delivery of a row that was delivered again afterwards. */
export interface Repeat {
  readonly id: string;
  readonly attempt: number;
  /** The process whose kill brought the row back; `undefined` if nothing explains it. */
  readonly killed: number | undefined;
  /** What happened, for people. */
  readonly text: string;
}

/** What the database, the ledgers and the kills together tell about deliveries. */
export class DeliveryHistory {
  readonly #claims: readonly WitnessedClaim[];
  readonly #lines: ReadonlyMap<string, readonly LedgerLine[]>;
  readonly #processes: readonly CrewProcess[];
  /** When the claim was made whose delivery each process began last. */
  readonly #lastHandedOut = new Map<number, number>();

  constructor(
    claims: readonly WitnessedClaim[],
    lines: readonly LedgerLine[],
    processes: readonly CrewProcess[],
  ) {
    this.#claims = claims;
    this.#lines = Map.groupBy(lines, nameOf);
    this.#processes = processes;
    for (const claim of claims) {
      for (const { event, pid } of this.#linesOf(claim)) {
        if (event === "start") this.#lastHandedOut.set(pid, claim.time);
      }
    }
  }

  /** The ids that more than one process says it has acked. */
  ackedTwice(): readonly string[] {
    const acks = [...this.#lines.values()].flat().filter(({ event }) => event === "ack");
    return [...Map.groupBy(acks, ({ id }) => id)].flatMap(([id, each]) =>
      each.length > 1 ? [id] : []
    );
  }

  /** Lines of a delivery that the database knows no claim of, or that began twice. */
  strangers(): readonly LedgerLine[] {
    const claimed = new Set(this.#claims.map(nameOf));
    return [...this.#lines].flatMap(([name, lines]) => {
      const starts = lines.filter(({ event }) => event === "start");
      return claimed.has(name) && starts.length === 1 ? [] : lines;
    });
  }

  /** Every delivery that was not its row's last. */
  repeats(): readonly Repeat[] {
    return [...Map.groupBy(this.#claims, ({ id }) => id).values()].flatMap((claims) =>
      claims.slice(1).map((next, index) => this.#explain(claims[index]!, next))
    );
  }

  #explain(claim: WitnessedClaim, next: WitnessedClaim): Repeat {
    const lines = this.#linesOf(claim);
    const holder = lines.length === 0 ? this.#killedBeforeStart(claim) : this.#holderOf(lines);
    // Two deliveries of a row must not overlap, so the holder has to be dead before the next claim.
    const dead = holder?.killedAt !== undefined && holder.killedAt <= next.time;
    const seen = lines.map(({ event, pid, time }) => `${event} by ${pid} at ${time}`);
    return {
      id: claim.id,
      attempt: claim.attempt,
      killed: dead ? holder.pid : undefined,
      text: `row ${claim.id}, attempt ${claim.attempt}: claimed at ${claim.time}, ` +
        `${seen.join(", ") || "never begun"}; ` +
        `${holder?.pid ?? "no process"} killed at ${holder?.killedAt ?? "no time"}; ` +
        `claimed again as attempt ${next.attempt} at ${next.time}`,
    };
  }

  /** The process that began the delivery and says nothing of how it ended. */
  #holderOf(lines: readonly LedgerLine[]): CrewProcess | undefined {
    const [start, ...others] = lines;
    if (start?.event !== "start" || others.length > 0) return undefined;
    return this.#processes.find(({ pid }) => pid === start.pid);
  }

  /** A process that lived at the claim and died before it began any that was claimed later. */
  #killedBeforeStart({ time }: WitnessedClaim): CrewProcess | undefined {
    return this.#processes.find(({ pid, startedAt, killedAt }) =>
      startedAt <= time && killedAt !== undefined && killedAt >= time &&
      (this.#lastHandedOut.get(pid) ?? time) <= time
    );
  }

  #linesOf(claim: WitnessedClaim): readonly LedgerLine[] {
    return this.#lines.get(nameOf(claim)) ?? [];
  }
}

function nameOf({ id, attempt }: { readonly id: string; readonly attempt: number }): string {
  return `${id} ${attempt}`;
}
