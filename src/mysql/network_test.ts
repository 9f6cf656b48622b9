import assert from "node:assert/strict";
import { readUrl } from "./address.ts";
import { mysqlDriver } from "./driver.ts";
import { connect } from "./own_client.ts";
import { aborted, isDriverError, query, serverTest } from "./server_for_test.ts";

serverTest("a server that falls silent is given up, and the pool goes on", async (server) => {
  await using network = new Network(new URL(server));
  const driver = mysqlDriver({
    label: "for a test",
    connections: 2,
    connect: () => connect(readUrl(network.address)),
    statementTimeout: 300,
    patience: 300,
    heartbeat: 100,
  });
  await driver.open();
  const [asking, idle] = [await driver.session(), await driver.session()];
  await asking.begin();
  await idle.begin();
  network.fallSilent();
  await assert.rejects(
    asking.query("SELECT 1"),
    isDriverError("disconnected", /^Cannot tell whether this succeeded: run SELECT 1: .* 300 ms/),
  );
  assert(asking.lost.aborted);
  // The heartbeat finds it out.
  await aborted(idle.lost);
  await assert.rejects(idle.commit(), isDriverError("disconnected", /nothing more was sent/));
  await query(driver, "SELECT 1");
  await Promise.all([asking.release(), idle.release()]);
  await driver.close();
});

serverTest("closing does not wait for a server that is silent", async (server) => {
  await using network = new Network(new URL(server));
  const driver = mysqlDriver({
    label: "for a test",
    connections: 1,
    connect: () => connect(readUrl(network.address)),
    statementTimeout: 300,
    patience: 300,
    heartbeat: 100,
  });
  await driver.open();
  network.fallSilent();
  await driver.close();
});

/** A network that can fall silent: what it carries then arrives nowhere, and nobody is told. */
class Network {
  readonly #listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  readonly #ends = new Set<Deno.Conn>();
  readonly #running: Promise<void>[] = [];
  #silent = new Set<Deno.Conn>();
  readonly #target: URL;

  constructor(target: URL) {
    this.#target = target;
    this.#running.push(this.#accept());
  }

  get address(): string {
    const address = new URL(this.#target);
    address.host = `127.0.0.1:${(this.#listener.addr as Deno.NetAddr).port}`;
    return address.href;
  }

  /** Connections that exist now carry nothing any more; new ones work. */
  fallSilent(): void {
    this.#silent = new Set(this.#ends);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    close(this.#listener);
    for (const end of this.#ends) close(end);
    await Promise.all(this.#running);
  }

  async #accept(): Promise<void> {
    try {
      for await (const near of this.#listener) {
        const port = Number(this.#target.port || 3306);
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
