import type { App } from "./app.ts";
import { inThisContext, thisContext } from "./clock.ts";
import type { Component } from "./component.ts";
import { healthResponse } from "./health.ts";
import { logOf } from "./log.ts";

/** Where an app serves HTTP. */
export interface ServeOptions {
  /** The port; 0 for any that is free. Default 8000. */
  readonly port?: number;
  /** The address to listen on; default `"0.0.0.0"`. */
  readonly hostname?: string;
  /** What clients that are sent away are told to wait, in seconds; default 5. */
  readonly retryAfter?: number;
  /** Whether `/livez` and `/readyz` are answered before the handler is asked; default true. */
  readonly health?: boolean;
  /** Called when it listens. */
  readonly onListen?: (address: { readonly hostname: string; readonly port: number }) => void;
}

/** Answers one request; `request.signal` aborts when the answer comes too late to be sent. */
export type HttpHandler = (request: Request, app: App) => Response | Promise<Response>;

/** What of `Deno.serve` is used. */
interface HttpServer {
  readonly addr: { readonly hostname: string; readonly port: number };
  readonly finished: Promise<void>;
  shutdown(): Promise<void>;
}

/**
 * Serves HTTP while the app runs. When it stops, no new connection is accepted, requests in flight
 * finish, and whoever is still in flight at the end of the drain gets 503 with `Retry-After`.
 */
export class HttpService implements Component {
  readonly name = "http";
  readonly #options: ServeOptions;
  readonly #handler: HttpHandler;
  #server: HttpServer | undefined;
  #isDown = false;
  #late = Promise.withResolvers<void>();
  #stopping = false;

  constructor(options: ServeOptions, handler: HttpHandler) {
    this.#options = options;
    this.#handler = handler;
  }

  start(app: App): void {
    const { port = 8000, hostname = "0.0.0.0", onListen } = this.#options;
    this.#late = Promise.withResolvers();
    this.#stopping = false;
    this.#isDown = false;
    const inApp = thisContext();
    this.#server = serverOf(
      {
        port,
        hostname,
        onListen: (address) => onListen?.(address) ?? listening(address),
      },
      (request) => inApp(() => this.#answer(request, app)),
    );
  }

  async stop(signal: AbortSignal): Promise<void> {
    this.#stopping = true;
    const late = inThisContext(() => this.#late.resolve());
    if (signal.aborted) late();
    else signal.addEventListener("abort", late, { once: true });
    await this.#server?.shutdown();
    this.#isDown = true;
  }

  async close(): Promise<void> {
    this.#late.resolve();
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    if (!this.#isDown) {
      throw new Error("an answer is still being sent, and its connection ends with the process");
    }
    await server.finished;
  }

  async #answer(request: Request, app: App): Promise<Response> {
    const { health = true } = this.#options;
    const known = health ? healthResponse(request, app) : undefined;
    if (known !== undefined) return known;
    const answer = this.#handle(request, app);
    const response = await Promise.race([answer, this.#late.promise]);
    if (response === undefined) {
      // What it does in the end is nobody's any more.
      answer.catch(() => {});
      return this.#unavailable();
    }
    if (this.#stopping) return lastOf(response);
    return response;
  }

  async #handle(request: Request, app: App): Promise<Response> {
    try {
      const response: unknown = await this.#handler(request, app);
      if (response instanceof Response) return response;
      throw new TypeError(`The handler returned ${typeof response}; return a Response`);
    } catch (error) {
      const { pathname } = new URL(request.url);
      const values = { method: request.method, pathname, error };
      // A client that has gone away is no failure of the service.
      if (request.signal.aborted) LOG.info("A client left: {method} {pathname}: {error}", values);
      else LOG.error("A request was not answered: {method} {pathname}: {error}", values);
      return new Response("Internal Server Error", { status: 500 });
    }
  }

  #unavailable(): Response {
    return new Response("Service Unavailable", {
      status: 503,
      headers: { "retry-after": String(this.#options.retryAfter ?? 5), connection: "close" },
    });
  }
}

/** The same answer, after which the connection is not used again. */
function lastOf(response: Response): Response {
  // A connection that became a WebSocket is no longer one of HTTP.
  if (response.status === 101) return response;
  const headers = new Headers(response.headers);
  headers.set("connection", "close");
  const { body, status, statusText } = response;
  return new Response(body, { status, statusText, headers });
}

function listening({ hostname, port }: { readonly hostname: string; readonly port: number }): void {
  LOG.info("HTTP is served on {hostname}:{port}", { hostname, port });
}

function serverOf(
  options: {
    readonly port: number;
    readonly hostname: string;
    readonly onListen: (address: { hostname: string; port: number }) => void;
  },
  handler: (request: Request) => Promise<Response>,
): HttpServer {
  const { Deno: deno } = globalThis as unknown as {
    readonly Deno?: { serve?(options: unknown, handler: unknown): HttpServer };
  };
  if (typeof deno?.serve === "function") return deno.serve(options, handler);
  throw new TypeError(
    "Cannot serve HTTP: app.serve needs Deno.serve; elsewhere give the app a component " +
      "{ name, start, stop } around the server that you use",
  );
}

const LOG = logOf("http");
