import type { BroadcastMessage } from "./broadcast_message.ts";

/** What of an envelope is not the message. */
export interface EnvelopeHead {
  readonly id: string;
  readonly topic: string;
  /** In milliseconds since 1970. */
  readonly sentAt: number;
}

/** A message as it goes through channels: one JSON text, whatever the channel. */
export class Envelope {
  readonly #head: EnvelopeHead;
  readonly #text: string;

  /** @param message as JSON */
  constructor(head: EnvelopeHead, message: string) {
    this.#head = head;
    this.#text = `${JSON.stringify(head).slice(0, -1)},"message":${message}}`;
  }

  /** The text for a channel that carries so many bytes; without the message if it is too long. */
  textFor(limit: number | undefined): { readonly text: string; readonly truncated: boolean } {
    if (limit === undefined || bytesOf(this.#text) <= limit) {
      return { text: this.#text, truncated: false };
    }
    return { text: JSON.stringify({ ...this.#head, truncated: true }), truncated: true };
  }
}

/** What has arrived; `undefined` if it is none of a broadcast's: others may use the channel too. */
export function readEnvelope(text: string): BroadcastMessage | undefined {
  const parsed = Object(parse(text)) as Partial<BroadcastMessage>;
  const { id, topic, sentAt, message, truncated = false } = parsed;
  const isEnvelope = typeof id === "string" && typeof topic === "string" &&
    Number.isFinite(sentAt) && typeof truncated === "boolean" && ("message" in parsed || truncated);
  return isEnvelope ? { id, topic, sentAt: sentAt!, message, truncated } : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
