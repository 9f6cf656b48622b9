import type { App } from "./app.ts";
import { backoff } from "./backoff.ts";
import { after, now, sleep, type Timer } from "./clock.ts";
import type { Component } from "./component.ts";
import { DeclarationError } from "./errors.ts";
import { logOf } from "./log.ts";
import type { AnyQueue } from "./queue.ts";
import type { RunningBroker } from "./running_broker.ts";
import { runningApps } from "./running_app.ts";
import { ScheduleMemory } from "./schedule_memory.ts";
import type { ScheduleTable } from "./schedule_table.ts";
import { type Slots, slotsOf } from "./slots.ts";

/** How a message is published by a schedule. */
export interface ScheduleOptions {
  /** What the schedule is called: unique in the service, the same in all of its processes. Default: the queue's name and the pattern. */
  readonly name?: string;
  /** The time zone of the pattern, an IANA name; default `"UTC"`. */
  readonly timeZone?: string;
  /**
   * Where the last slot that was published is remembered, so that of several processes one publishes
   * it. Without it the queue's table needs the roles `uniqueKey` and `processedAt`, and must keep
   * processed rows for longer than two processes can be apart.
   */
  readonly scheduleTable?: ScheduleTable;
  /**
   * Whether a slot that passed while no process ran is made up for at start: once, whatever number of
   * slots were missed. Needs `scheduleTable`; default false.
   */
  readonly catchUp?: boolean;
}

/** A schedule as it was declared. */
export interface DeclaredSchedule extends ScheduleOptions {
  readonly name: string;
  readonly pattern: string;
  readonly queue: AnyQueue;
  readonly message: unknown | ((slot: Date) => unknown);
}

/** Publishes a message at each slot of a cron pattern, once over all processes. */
export class Schedule implements Component {
  readonly name: string;
  readonly #declared: DeclaredSchedule;
  #broker: RunningBroker | undefined;
  #slots: Slots | undefined;
  #memory: ScheduleMemory | undefined;
  #timer: Timer | undefined;
  #publishing: Promise<void> = Promise.resolve();
  #stop = new AbortController();

  constructor(declared: DeclaredSchedule) {
    this.name = `schedule ${declared.name}`;
    this.#declared = declared;
    checkMemory(declared);
  }

  async start(app: App): Promise<void> {
    const { pattern, timeZone, queue, scheduleTable, catchUp = false } = this.#declared;
    this.#stop = new AbortController();
    this.#slots = await slotsOf(pattern, timeZone);
    this.#broker = runningApps.get(app)!.brokerOf(queue);
    if (scheduleTable !== undefined) {
      this.#memory = new ScheduleMemory(scheduleTable, this.#declared.name, this.#broker);
      const last = await this.#memory.open(now());
      const missed = catchUp ? this.#slots.lastBetween(last, now()) : undefined;
      if (missed !== undefined) this.#publish(missed);
    }
    this.#arm(now());
  }

  /** A publish that is in flight finishes. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#timer?.cancel();
    await this.#publishing;
  }

  #arm(from: number): void {
    const slot = this.#slots!.after(from);
    if (slot === undefined || this.#stop.signal.aborted) return;
    this.#timer = after(Math.max(0, slot - now()), () => {
      this.#publish(slot);
      // Slots that have passed while the process stood still are not made up for.
      this.#arm(Math.max(slot, now()));
    });
  }

  #publish(slot: number): void {
    this.#publishing = this.#publishing.then(() => this.#publishUntilDone(slot));
  }

  /** Whatever became of the tries before, a slot is taken once; it is tried until the next one. */
  async #publishUntilDone(slot: number): Promise<void> {
    const end = this.#slots!.after(slot) ?? Infinity;
    const place = { slot: new Date(slot).toISOString(), name: this.#declared.name };
    for (let tries = 1;; tries++) {
      try {
        await this.#publishOnce(slot);
        if (tries > 1) LOG.info("Slot {slot} of schedule {name} is published", place);
        return;
      } catch (error) {
        const values = { ...place, error };
        if (tries === 1) {
          LOG.error("Slot {slot} of schedule {name} is not published: {error}", values);
        }
      }
      await sleep(backoff(tries, BETWEEN_TRIES), this.#stop.signal);
      if (this.#stop.signal.aborted || now() >= end) return;
    }
  }

  async #publishOnce(slot: number): Promise<void> {
    const { queue, message, name } = this.#declared;
    const made = typeof message === "function" ? await message(new Date(slot)) : message;
    const broker = this.#broker!;
    const memory = this.#memory;
    if (memory === undefined) {
      const uniqueKey = `${name} ${new Date(slot).toISOString()}`;
      await broker.publish(queue, made, { uniqueKey });
      return;
    }
    await broker.transaction(async (tx) => {
      if (await memory.take(slot, tx)) await broker.publish(queue, made, { tx });
    });
  }
}

/** What remembers that a slot was published, after its message is gone. */
function checkMemory({ name, queue, scheduleTable, catchUp }: DeclaredSchedule): void {
  const { table, description: { uniqueKey, processedAt } } = queue.inbox;
  if (scheduleTable === undefined && (uniqueKey === undefined || processedAt === undefined)) {
    throw new DeclarationError(
      `Cannot schedule "${name}": nothing would remember which slots of queue "${queue.name}" were ` +
        `published; give { scheduleTable: scheduleTable("…") }, or give "${table}" the roles ` +
        `uniqueKey and processedAt`,
    );
  }
  if (catchUp && scheduleTable === undefined) {
    throw new DeclarationError(
      `Cannot catch up on slots of schedule "${name}": nothing tells which was the last; ` +
        `give { scheduleTable: scheduleTable("…") }`,
    );
  }
}

/** In milliseconds. */
const BETWEEN_TRIES = { first: 500, cap: 5_000 };
const LOG = logOf("schedule");
