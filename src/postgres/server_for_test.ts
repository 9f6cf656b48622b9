import assert from "node:assert/strict";
import type { Driver, QueryResult, Session, SqlRow, SqlValue } from "../driver/driver.ts";
import { DriverError, type DriverErrorKind } from "../errors.ts";
import { postgres, type PostgresOptions } from "./mod.ts";

/** Where the tests' server is; they are skipped, in print, where there is none. */
export const SERVER: string | undefined = Deno.env.get("HOLDFAST_TEST_POSTGRES");

/** A test that needs a server. */
export function serverTest(name: string, test: (server: string) => Promise<void>): void {
  Deno.test(name, async () => {
    if (SERVER !== undefined) return await test(SERVER);
    const reason = "HOLDFAST_TEST_POSTGRES is not set to the URL of a Postgres server";
    if (Deno.env.get("CI") === "true") throw new Error(`Cannot test: ${reason}`);
    console.log(`skipped: ${reason}`);
  });
}

/** Runs a test with an open driver of its own, which is closed afterwards. */
export async function withDriver(
  server: string,
  options: PostgresOptions,
  test: (driver: Driver, applicationName: string) => Promise<void>,
): Promise<void> {
  const applicationName = `holdfast ${crypto.randomUUID()}`;
  const driver = postgres(server, { applicationName, ...options });
  await driver.open();
  try {
    await test(driver, applicationName);
  } finally {
    await driver.close();
  }
}

/** Runs one statement on a session of its own. */
export async function query(
  driver: Driver,
  text: string,
  params: readonly SqlValue[] = [],
): Promise<QueryResult> {
  const session = await driver.session();
  try {
    return await session.query(text, params);
  } finally {
    await session.release();
  }
}

/** The first row of a statement. */
export async function firstRow(
  on: Driver | Session,
  text: string,
  params: readonly SqlValue[] = [],
): Promise<SqlRow> {
  const { rows: [row] } = "query" in on
    ? await on.query(text, params)
    : await query(on, text, params);
  assert(row !== undefined, text);
  return row;
}

/** Ends a session's connection as an administrator does. */
export async function kill(driver: Driver, pid: SqlValue | undefined): Promise<void> {
  await query(driver, "SELECT pg_terminate_backend($1::int)", [pid ?? null]);
}

/** The process of the server that serves this session. */
export async function pidOf(session: Session): Promise<SqlValue> {
  return (await firstRow(session, "SELECT pg_backend_pid() AS pid")).pid ?? null;
}

/** How many connections the server knows by this name. */
export async function countConnections(driver: Driver, applicationName: string): Promise<number> {
  const { count } = await firstRow(
    driver,
    "SELECT count(*)::int FROM pg_stat_activity WHERE application_name = $1",
    [applicationName],
  );
  return Number(count);
}

/** A table that no other test has. */
export function tableName(): string {
  return `holdfast_${crypto.randomUUID().replaceAll("-", "")}`;
}

/** Checks what an error is, for `assert.rejects`. */
export function isDriverError(kind: DriverErrorKind, ...patterns: RegExp[]) {
  return (error: unknown): true => {
    assert(error instanceof DriverError, String(error));
    assert.equal(error.kind, kind, error.message);
    for (const pattern of patterns) assert.match(error.message, pattern);
    return true;
  };
}

/** Resolves once the signal has aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}

/** Waits until this holds; rejects after some seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let left = 500; !(await condition()); left--) {
    assert(left > 0, `Waited in vain until ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A network that can fall silent: what it carries then arrives nowhere, and nobody is told. */
export class Network {
  readonly #listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  readonly #ends = new Set<Deno.Conn>();
  readonly #running: Promise<void>[] = [];
  #silent = new Set<Deno.Conn>();
  readonly #target: URL;

  constructor(server: string) {
    this.#target = new URL(server);
    this.#running.push(this.#accept());
  }

  /** The server's address through this network. */
  get address(): string {
    const address = new URL(this.#target);
    const { port } = this.#listener.addr as Deno.NetAddr;
    address.host = `127.0.0.1:${port}`;
    return address.href;
  }

  /** Connections that exist now carry nothing any more; new ones work. */
  fallSilent(): void {
    this.#silent = new Set(this.#ends);
  }

  /** Takes the network down. */
  async [Symbol.asyncDispose](): Promise<void> {
    close(this.#listener);
    for (const end of this.#ends) close(end);
    await Promise.all(this.#running);
  }

  async #accept(): Promise<void> {
    try {
      for await (const near of this.#listener) {
        const port = Number(this.#target.port || 5432);
        const far = await Deno.connect({ hostname: this.#target.hostname, port });
        this.#ends.add(near).add(far);
        this.#running.push(this.#carry(near, far), this.#carry(far, near));
      }
    } catch {
      // Closed.
    }
  }

  async #carry(from: Deno.Conn, to: Deno.Conn): Promise<void> {
    const buffer = new Uint8Array(65536);
    try {
      for (let size; (size = await from.read(buffer)) !== null;) {
        for (let sent = 0; !this.#silent.has(from) && sent < size;) {
          sent += await to.write(buffer.subarray(sent, size));
        }
      }
    } catch {
      // Cut.
    }
    if (!this.#silent.has(from)) close(to);
  }
}

function close(end: { close(): void }): void {
  try {
    end.close();
  } catch {
    // Closed already.
  }
}
