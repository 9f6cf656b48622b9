import type { CrewProcess } from "./crash_crew.ts";
import type { LedgerLine } from "./delivery_ledger.ts";

/** One run of a handler. */
interface Run {
  readonly queue: string;
  readonly id: bigint;
  readonly pid: number;
  readonly start: number;
  /** When it began to settle, or failed; `undefined` where it was killed before. */
  end: number | undefined;
  /** When it began to ack. */
  acking: number | undefined;
}

/** What the ledgers and the kills together tell about the order within groups. */
export class FifoHistory {
  readonly #runs: readonly Run[];
  readonly #processes: ReadonlyMap<number, CrewProcess>;

  constructor(lines: readonly LedgerLine[], processes: readonly CrewProcess[]) {
    this.#runs = runsOf(lines);
    this.#processes = new Map(processes.map((each) => [each.pid, each]));
  }

  /** How many handlers were run. */
  get runs(): number {
    return this.#runs.length;
  }

  /** How many of them were cut short by the kill of their process. */
  get cutShort(): number {
    return this.#runs.filter(({ end }) => end === undefined).length;
  }

  /** The ids of a group in the order in which their last acks were begun. */
  ackedOf(queue: string): readonly bigint[] {
    return [...this.#lastAcks(queue)].toSorted(([, a], [, b]) => a - b).map(([id]) => id);
  }

  /** The ids of a group whose handlers were run. */
  startedOf(queue: string): readonly bigint[] {
    return [...new Set(this.#of(queue).map(({ id }) => id))];
  }

  /** Handlers that began while another of their group was at work. */
  overlaps(): readonly string[] {
    return [...this.#groups].flatMap((runs) =>
      runs.slice(1).flatMap((run, index) => {
        const before = runs[index]!;
        const end = this.#endOf(before);
        return run.start >= end
          ? []
          : [`${describe(run)} began before ${end}: ${describe(before)}`];
      })
    );
  }

  /** Handlers that began before the ack of an earlier message of their group was begun. */
  tooEarly(): readonly string[] {
    return [...this.#groups].flatMap((runs) => {
      const acks = [...this.#lastAcks(runs[0]!.queue)];
      return runs.flatMap((run) => {
        const earlier = acks.filter(([id, time]) => id < run.id && time > run.start);
        return earlier.map(([id, time]) =>
          `${describe(run)} began before ${id} was acked: ${time}`
        );
      });
    });
  }

  /** A process that was killed did nothing afterwards, and was alive just before. */
  #endOf({ end, pid }: Run): number {
    return end ?? this.#processes.get(pid)?.doomedAt ?? Infinity;
  }

  /** An ack that was followed by another was not committed. */
  #lastAcks(queue: string): ReadonlyMap<bigint, number> {
    return new Map(
      this.#of(queue).flatMap(({ id, acking }) => acking === undefined ? [] : [[id, acking]]),
    );
  }

  #of(queue: string): readonly Run[] {
    return this.#runs.filter((run) => run.queue === queue);
  }

  get #groups(): Iterable<readonly Run[]> {
    return Map.groupBy(this.#runs, ({ queue }) => queue).values();
  }
}

/** By their start; the lines of each process are in order. */
function runsOf(lines: readonly LedgerLine[]): readonly Run[] {
  const runs: Run[] = [];
  const open = new Map<string, Run>();
  for (const { event, queue, id, pid, time } of lines) {
    const name = `${pid} ${id}`;
    if (event === "start") {
      const run = { queue, id: BigInt(id), pid, start: time, end: undefined, acking: undefined };
      runs.push(run);
      open.set(name, run);
      continue;
    }
    const run = open.get(name);
    if (run === undefined) continue;
    if (event === "acking") run.acking = time;
    if (event === "acking" || event === "failed") run.end = time;
  }
  return runs.toSorted((a, b) => a.start - b.start);
}

function describe({ queue, id, pid, start }: Run): string {
  return `message ${id} of ${queue} by ${pid} at ${start}`;
}
