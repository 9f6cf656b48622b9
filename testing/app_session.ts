import type { LockHolder, QueryResult, Session, SqlValue } from "../src/driver/driver.ts";
import type { Steps } from "../src/driver/steps.ts";
import { DriverError } from "../src/errors.ts";
import { askingDelivery } from "./asking_delivery.ts";
import { clockedHandle } from "./clocked_handle.ts";
import { hostDeadline } from "./test_time.ts";

/** What a session asks of the driver that has opened it. */
export interface SessionOwner {
  /** Told when the connection has been given back. */
  ended(session: AppSession): void;
  /** Whether the database's clock can be set. */
  readonly setsClock: boolean;
  /** Lets the database's clock stand where the test's does, before a statement. */
  setClock(session: Session): Promise<void>;
}

/** A session of an app in a test: it can be cut, and it can be told what it was used for. */
export class AppSession implements Session {
  readonly transact?: Session["transact"];
  readonly checkpoint?: Session["checkpoint"];
  readonly #real: Session;
  readonly #owner: SessionOwner;
  /** Made when somebody listens. */
  #lost: AbortController | undefined;
  /** What has been sent and not answered, and how to answer that the session is cut. */
  readonly #inFlight = new Map<Promise<unknown>, (error: Error) => void>();
  readonly #locks: string[] = [];
  readonly #openedFor = askingDelivery.getStore();
  #isOpen = false;
  #cut: DriverError | undefined;
  #hasEnded = false;
  #isDead = false;
  #lastText = "";

  /** Over a session of the real driver. */
  constructor(real: Session, owner: SessionOwner) {
    this.#real = real;
    this.#owner = owner;
    if (real.transact !== undefined) {
      this.transact = <T>(makeSteps: () => Steps<T>) => this.#send(() => real.transact!(makeSteps));
    }
    if (real.checkpoint !== undefined) {
      this.checkpoint = () => this.#send(() => real.checkpoint!());
    }
  }

  get lost(): AbortSignal {
    this.#lost ??= this.#follow(this.#real.lost);
    return this.#lost.signal;
  }

  get handle(): unknown {
    const { handle } = this.#real;
    if (!this.#owner.setsClock || handle === undefined) return handle;
    return clockedHandle(handle as object, () => this.#owner.setClock(this.#real));
  }

  /** What it holds, for a leak report. */
  get description(): string {
    const whose = this.#openedFor === undefined ? "" : ` of ${this.#openedFor}`;
    const parts = [
      this.#isOpen
        ? `an open transaction${whose} that was never ended`
        : `a connection${whose} that was never given back`,
      ...this.#locks.map((key) => `the lock of key "${key}"`),
      ...(this.#lastText === "" ? [] : [`last statement: ${this.#lastText}`]),
    ];
    return parts.join(", ");
  }

  query(text: string, params?: readonly SqlValue[]): Promise<QueryResult> {
    return this.#statement(text, () => this.#real.query(text, params));
  }

  queryEach(
    text: string,
    paramSets: readonly (readonly SqlValue[])[],
  ): Promise<readonly QueryResult[]> {
    return this.#statement(text, () => this.#real.queryEach(text, paramSets));
  }

  async begin(): Promise<void> {
    await this.#send(() => this.#real.begin());
    this.#isOpen = true;
  }

  async commit(): Promise<void> {
    await this.#send(() => this.#real.commit());
    this.#isOpen = false;
  }

  async rollback(): Promise<void> {
    await this.#send(() => this.#real.rollback());
    this.#isOpen = false;
  }

  async tryLock(key: string): Promise<LockHolder | undefined> {
    const holder = await this.#send(() => this.#real.tryLock(key));
    if (holder !== undefined) this.#locks.push(key);
    return holder;
  }

  async release(): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (this.#cut === undefined) await this.#real.release();
    this.#owner.ended(this);
  }

  /**
   * Cuts it as a lost connection does: what is in flight is not answered, though it may be carried
   * out, and what was not committed is rolled back. Resolves when the database has done so, or takes
   * long over it, as it does while a statement waits for the lock of another session.
   */
  async cut(reason: string): Promise<void> {
    if (this.#isGone) return;
    const ended = this.#end(reason);
    if (this.#holds) this.#lost?.abort(this.#cut);
    await ended;
  }

  /** As `cut`, with a process that is gone: nobody is told that its connection is lost. */
  async kill(reason: string): Promise<void> {
    this.#isDead = true;
    if (!this.#isGone) await this.#end(reason);
  }

  /** Whether something ends with it. */
  get #holds(): boolean {
    return this.#isOpen || this.#locks.length > 0;
  }

  get #isGone(): boolean {
    return this.#hasEnded || this.#cut !== undefined;
  }

  #end(reason: string): Promise<void> {
    const error = new DriverError("disconnected", reason);
    this.#cut = error;
    const sent = [...this.#inFlight.keys()];
    for (const reject of this.#inFlight.values()) reject(error);
    const released = Promise.allSettled(sent).then(() => this.#real.release());
    return hostDeadline(LONGEST_CUT, released, undefined);
  }

  async #statement<T>(text: string, send: () => Promise<T>): Promise<T> {
    this.#lastText = text;
    return await this.#send(async () => {
      await this.#owner.setClock(this.#real);
      return await send();
    });
  }

  async #send<T>(send: () => Promise<T>): Promise<T> {
    if (this.#cut !== undefined) throw this.#cut;
    const sent = send();
    try {
      return await new Promise<T>((resolve, reject) => {
        this.#inFlight.set(sent, reject);
        sent.then(resolve, reject);
      });
    } finally {
      this.#inFlight.delete(sent);
    }
  }

  #follow(real: AbortSignal): AbortController {
    const lost = new AbortController();
    const follow = (): void => {
      if (!this.#isDead) lost.abort(real.reason);
    };
    if (this.#cut !== undefined && this.#holds && !this.#isDead) lost.abort(this.#cut);
    else if (real.aborted) follow();
    else real.addEventListener("abort", follow, { once: true });
    return lost;
  }
}

/** In milliseconds of real time. */
const LONGEST_CUT = 1_000;
