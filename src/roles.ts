import type { Form } from "./driver/form.ts";
import type { MessageId } from "./driver/dialect.ts";
import type { Payload } from "./payload.ts";

/** The role `id` where the service makes the ids itself, not the database. */
export interface IdRole {
  /** The column. */
  readonly column: string;
  /** Makes the id of a new message. It must never make the same one twice. */
  readonly generate: () => MessageId;
}

/** What the columns of a table do for the queue. Each column plays at most one role. */
export interface Roles {
  /** Identifies the row. The database generates it, or `generate` does. */
  readonly id: string | IdRole;
  /** Holds the message: `json`, `text`, `bytes` or `codec`. */
  readonly payload: Payload<never, unknown>;
  /** The number of the next delivery, 1 for the first. */
  readonly attempt?: string;
  /** When the lease of the row's holder ends. With it the table is in the lease form. */
  readonly lockedUntil?: string;
}

/** The roles as declared, or, where they cannot work, the reason in place of their type. */
export type CheckedRoles<R, Table extends string> = Exclude<keyof R, keyof Roles> extends never ? R
  : `${
    & Exclude<keyof R, keyof Roles>
    & string} is not a role: describe "${Table}" with id, payload, attempt, lockedUntil`;

/** What is published to a table with these roles. */
export type MessageIn<R> = R extends { readonly payload: Payload<infer In, infer _Out> } ? In
  : never;

/** What a handler gets from a table with these roles. */
export type MessageOut<R> = R extends { readonly payload: Payload<infer _In, infer Out> } ? Out
  : never;

/** The form of a table with these roles; any form where they are only known when the program runs. */
export type FormOf<R> = R extends { readonly lockedUntil: string } ? "lease"
  : "lockedUntil" extends keyof R ? Form
  : "row lock";

/** The type of `delivery.attempt` of a table with these roles. */
export type AttemptOf<R> = R extends { readonly attempt: string } ? number
  : "attempt" extends keyof R ? number | undefined
  : undefined;
