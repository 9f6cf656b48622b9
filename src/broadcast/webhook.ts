import type { Channel } from "../channel.ts";
import { after, inRealTime } from "../clock.ts";
import { type Duration, toMilliseconds } from "../duration.ts";
import { DeclarationError } from "../errors.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import { asError } from "../thrown.ts";

/** How a webhook is called. */
export interface WebhookOptions {
  /** How long it may take to answer; default 5 s. */
  readonly timeout?: Duration;
  /** What requests are signed with; not signed unless given. */
  readonly secret?: string;
  /** The header of the signature; default `"x-holdfast-signature"`. */
  readonly header?: string;
  /** Further headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What makes the requests; default the global `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/**
 * A channel that sends each text as a POST request with a JSON body, and receives nothing. Any answer but
 * 2xx, a redirect too, is a failure.
 *
 * With a `secret` the header `x-holdfast-signature` is `sha256=` and the HMAC-SHA256 of the body in
 * hexadecimal: whoever receives it computes the same over the bytes of the body, and compares.
 *
 * @throws {DeclarationError} if the URL is not one of HTTP, has credentials in it, or an option cannot be
 * used
 * @throws {TypeError} if `timeout` is no duration
 * @throws {RangeError} if `timeout` is negative
 */
export function webhook(url: string | URL, options: WebhookOptions = {}): Channel {
  return new WebhookChannel(url, options);
}

class WebhookChannel implements Channel {
  readonly name: string;
  readonly #url: URL;
  readonly #timeout: number;
  readonly #secret: string | undefined;
  readonly #header: string;
  readonly #headers: Headers;
  readonly #fetch: WebhookOptions["fetch"];
  #key: Promise<CryptoKey> | undefined;
  #closing = new AbortController();

  constructor(url: string | URL, options: WebhookOptions) {
    this.#url = readUrl(url);
    refuseUnknownOptions(`Cannot make a webhook of ${this.#place}`, options, OPTIONS);
    const { timeout = 5_000, secret, header = "x-holdfast-signature", headers = {} } = options;
    if (secret !== undefined && (typeof secret !== "string" || secret === "")) {
      throw new DeclarationError(
        `Cannot sign requests to ${this.#place} with an empty secret: give a text, or leave it out`,
      );
    }
    this.name = `webhook ${this.#url.host}`;
    this.#timeout = toMilliseconds(timeout, "timeout of a webhook");
    this.#secret = secret;
    this.#header = header;
    this.#headers = readHeaders(this.#place, headers, header);
    this.#fetch = options.fetch;
  }

  open(): Promise<void> {
    this.#closing = new AbortController();
    return Promise.resolve();
  }

  send(text: string): Promise<void> {
    return inRealTime(() => this.#send(text));
  }

  close(): Promise<void> {
    this.#closing.abort(new Error("the channel was closed"));
    return Promise.resolve();
  }

  async #send(text: string): Promise<void> {
    const late = new AbortController();
    const timer = after(
      this.#timeout,
      () => late.abort(new Error(`no answer within ${this.#timeout} ms`)),
    );
    const signal = AbortSignal.any([late.signal, this.#closing.signal]);
    try {
      await this.#post(new TextEncoder().encode(text), signal);
    } catch (thrown) {
      const cause = asError(thrown, "fetch");
      throw new Error(`Cannot send to the webhook ${this.#place}: ${cause.message}`, { cause });
    } finally {
      timer.cancel();
    }
  }

  async #post(body: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<void> {
    const headers = new Headers(this.#headers);
    if (this.#secret !== undefined) headers.set(this.#header, await this.#sign(body));
    const request = { method: "POST", headers, body, signal, redirect: "manual" } as const;
    const send = this.#fetch ?? fetch;
    const response = await unlessAborted(send(this.#url.href, request), signal);
    // Only the status counts; what is not read would keep the connection.
    await response.body?.cancel();
    if (!response.ok) throw new Error(`it answered ${response.status}`);
  }

  async #sign(body: Uint8Array<ArrayBuffer>): Promise<string> {
    this.#key ??= crypto.subtle.importKey(
      "raw",
      new TextEncoder().encode(this.#secret),
      { name: "HMAC", hash: "SHA-256" },
      false,
      ["sign"],
    );
    const signature = await crypto.subtle.sign("HMAC", await this.#key, body);
    return `sha256=${new Uint8Array(signature).toHex()}`;
  }

  /** As it may be logged: the rest of a URL often holds a secret. */
  get #place(): string {
    return `${this.#url.origin}${this.#url.pathname}`;
  }
}

function readUrl(given: string | URL): URL {
  const url = URL.parse(String(given));
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  if (url === null || !isHttp || url.username !== "" || url.password !== "") {
    throw new DeclarationError(
      "Cannot send to a webhook at the URL given: give one of http: or https:, without a user and a " +
        "password, which go into a header",
    );
  }
  return url;
}

function readHeaders(
  place: string,
  given: Readonly<Record<string, string>>,
  signature: string,
): Headers {
  try {
    const headers = new Headers(given);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    // Throws if there can be no header of this name.
    headers.delete(signature);
    return headers;
  } catch (cause) {
    const { message } = asError(cause, "Headers");
    throw new DeclarationError(`Cannot send such headers to the webhook ${place}: ${message}`, {
      cause,
    });
  }
}

/** A `fetch` of the service's own may not heed its signal. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

const OPTIONS: readonly string[] = ["timeout", "secret", "header", "headers", "fetch"];
