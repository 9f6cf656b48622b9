import type { Dialect } from "../src/driver/dialect.ts";
import type { Driver, JoinedTransaction, Session } from "../src/driver/driver.ts";
import type { Listening, NotificationListener } from "../src/driver/listen.ts";
import type { Form } from "../src/driver/form.ts";
import { DriverError, type DriverErrorKind } from "../src/errors.ts";
import { AppSession, type SessionOwner } from "./app_session.ts";
import { SharedDriver } from "./shared_driver.ts";
import type { TestTime } from "./test_time.ts";

/** A driver as one app in a test has it: its sessions are known, and can be cut. */
export class AppDriver implements Driver, SessionOwner {
  readonly name: string;
  readonly forms: readonly Form[];
  readonly hasOneWriter?: boolean;
  readonly connections?: number;
  readonly dialect: Dialect;
  readonly countLockWaits?: Driver["countLockWaits"];
  readonly listen?: Driver["listen"];
  readonly #real: Driver;
  readonly #time: TestTime;
  readonly #sessions = new Set<AppSession>();
  #unreachableUntil = -Infinity;
  #cuts = 0;
  readonly #listeners = new Set<NotificationListener>();
  /** Whether listeners have not been told that an outage is over. */
  #isDeaf = false;

  /** Over the driver that the app was declared with. */
  constructor(real: Driver, time: TestTime) {
    this.#real = real;
    this.#time = time;
    this.name = real.name;
    this.forms = real.forms;
    this.hasOneWriter = real.hasOneWriter;
    this.connections = real.connections;
    this.dialect = real.dialect;
    if (real.countLockWaits !== undefined) this.countLockWaits = () => real.countLockWaits!();
    if (real.listen !== undefined) {
      this.listen = (channel, listener) => this.#listen(channel, listener);
    }
  }

  /** The sessions that have not been given back. */
  get sessions(): readonly AppSession[] {
    return [...this.#sessions];
  }

  /** How many milliseconds it takes until the database can be reached again; 0 if it can. */
  get outage(): number {
    return Math.max(0, this.#unreachableUntil - this.#time.now);
  }

  open(): Promise<void> {
    return SharedDriver.of(this.#real).open();
  }

  close(): Promise<void> {
    return SharedDriver.of(this.#real).close();
  }

  enableLocks(): Promise<void> {
    return this.#real.enableLocks();
  }

  async session(): Promise<Session> {
    this.#refuseUnreachable();
    const cuts = this.#cuts;
    const real = await this.#real.session();
    if (this.#cuts !== cuts) {
      await real.release();
      throw new DriverError("disconnected", CUT);
    }
    const session = new AppSession(real, this);
    this.#sessions.add(session);
    return session;
  }

  join(tx: unknown): JoinedTransaction {
    return this.#real.join(tx);
  }

  classify(error: unknown): DriverErrorKind {
    return this.#real.classify(error);
  }

  /** See {@link SessionOwner}. */
  ended(session: AppSession): void {
    this.#sessions.delete(session);
  }

  /** See {@link SessionOwner}. */
  get setsClock(): boolean {
    return this.dialect.setClock !== undefined && this.#time.isVirtual;
  }

  /** Functions like `NOW()` and defaults of columns then tell the test's time, where they can. */
  async setClock(session: Session): Promise<void> {
    if (!this.setsClock) return;
    const text = this.dialect.setClock!(this.#time.now);
    if (text !== undefined) await session.query(text);
  }

  /**
   * Cuts all sessions, and refuses new ones for as long as the database is not to be reached. Resolves
   * when what they had open is rolled back, or a second after where the database waits for others.
   *
   * @param until in milliseconds since 1970
   */
  async cut(until: number): Promise<void> {
    this.#cuts++;
    this.#unreachableUntil = until;
    this.#isDeaf = true;
    for (const listener of this.#listeners) listener.lost(new DriverError("disconnected", CUT));
    await Promise.all(this.sessions.map((session) => session.cut(CUT)));
  }

  /** Cuts all sessions for good, as the end of their process does, of which nobody in it is told. */
  async kill(): Promise<void> {
    this.#cuts++;
    this.#unreachableUntil = Infinity;
    await Promise.all(this.sessions.map((session) => session.kill(CUT)));
  }

  /** What is notified during an outage does not arrive; its end is told by the next session. */
  async #listen(channel: string, listener: NotificationListener): Promise<Listening> {
    this.#refuseUnreachable();
    const listening = await this.#real.listen!(channel, {
      receive: (payload) => {
        if (this.outage === 0) listener.receive(payload);
      },
      lost: (error) => listener.lost(error),
      restored: () => listener.restored(),
    });
    this.#listeners.add(listener);
    return {
      close: () => {
        this.#listeners.delete(listener);
        return listening.close();
      },
    };
  }

  #refuseUnreachable(): void {
    if (this.outage > 0) throw new DriverError("disconnected", CUT);
    if (!this.#isDeaf) return;
    this.#isDeaf = false;
    for (const listener of this.#listeners) listener.restored();
  }
}

const CUT = "The test has cut the connection";
