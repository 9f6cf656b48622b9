/** What a connection is cut at. */
export interface Fault {
  /** What the client sends, read as Latin-1; anything unless given. */
  readonly sends?: RegExp;
  /** How often it is sent in peace before; default 0. */
  readonly skips?: number;
  /** Whether it arrives: then it is the answer that is lost. */
  readonly arrives: boolean;
}

/** A network between a client and a server, which cuts a connection at what is sent through it. */
export class FaultyNetwork implements AsyncDisposable {
  /** The server's address through this network, as `connectTo` takes it. */
  readonly address: string;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #server: Deno.ConnectOptions;
  readonly #ends = new Set<Deno.Conn>();
  readonly #running = new Set<Promise<void>>();
  #fault: Fault | undefined;
  #skipped = 0;

  /** @param address of the server: its kind, a colon, and its URL */
  constructor(address: string) {
    const colon = address.indexOf(":");
    const url = new URL(address.slice(colon + 1));
    this.#server = { hostname: url.hostname, port: Number(url.port) };
    url.host = `127.0.0.1:${(this.#listener.addr as Deno.NetAddr).port}`;
    this.address = `${address.slice(0, colon)}:${url}`;
    this.#keep(this.#accept());
  }

  /** The fault that is still to come. */
  get fault(): Fault | undefined {
    return this.#fault;
  }

  /** Cuts a connection at what is sent from now on, once; `undefined` for no more. */
  cutAt(fault: Fault | undefined): void {
    this.#fault = fault;
    this.#skipped = 0;
  }

  /** Takes the network down. */
  async [Symbol.asyncDispose](): Promise<void> {
    close(this.#listener);
    for (const end of this.#ends) close(end);
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async #accept(): Promise<void> {
    try {
      for await (const client of this.#listener) this.#keep(this.#serve(client));
    } catch {
      // Closed.
    }
  }

  async #serve(client: Deno.Conn): Promise<void> {
    const server = await Deno.connect(this.#server);
    const ends = [client, server] as const;
    for (const end of ends) this.#ends.add(end);
    const cut = { isDue: false };
    const up = carry(client, server, (bytes) => {
      if (!this.#isDue(bytes)) return true;
      cut.isDue = true;
      const { arrives } = this.#fault!;
      this.#fault = undefined;
      return arrives; // then the answer closes the connection
    });
    const down = carry(server, client, () => !cut.isDue);
    await Promise.all([up, down]);
    for (const end of ends) this.#ends.delete(end);
  }

  #isDue(sent: Uint8Array): boolean {
    if (this.#fault === undefined) return false;
    const { sends, skips = 0 } = this.#fault;
    if (sends?.test(LATIN_1.decode(sent)) === false) return false;
    return this.#skipped++ === skips;
  }

  #keep(running: Promise<void>): void {
    const kept = running.catch(() => {}).finally(() => this.#running.delete(kept));
    this.#running.add(kept);
  }
}

/** Carries bytes until one side closes, or until some are refused; then both are closed. */
async function carry(
  from: Deno.Conn,
  to: Deno.Conn,
  mayPass: (bytes: Uint8Array) => boolean,
): Promise<void> {
  const buffer = new Uint8Array(65_536);
  try {
    for (let size; (size = await from.read(buffer)) !== null;) {
      if (!mayPass(buffer.subarray(0, size))) break;
      for (let sent = 0; sent < size;) sent += await to.write(buffer.subarray(sent, size));
    }
  } catch {
    // Cut.
  }
  close(from);
  close(to);
}

function close(end: { close(): void }): void {
  try {
    end.close();
  } catch {
    // Closed already.
  }
}

const LATIN_1 = new TextDecoder("latin1");
