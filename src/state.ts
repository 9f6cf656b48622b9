/** Names something that hooks make and handlers use, with its type. Made by `state`. */
export interface StateKey<T> {
  /** The name, as it stands in errors. */
  readonly name: string;
  /** This key with a value, to be put in place of what the app makes, in tests. */
  with(value: T): StateValue;
}

/** A key and its value. Made by `StateKey.with`. */
export interface StateValue {
  /** The key. */
  readonly key: StateKey<never>;
  /** The value. */
  readonly value: unknown;
}

/**
 * Declares something that a hook makes and handlers use.
 *
 * ```ts
 * import { App, state } from "@holdfast/inbox";
 *
 * const greeting = state<string>("greeting");
 * const app = new App({ name: "greeter" }).onStartup((app) => {
 *   app.set(greeting, "Hello");
 * });
 * ```
 *
 * @param name the name, as it stands in errors
 */
export function state<T>(name: string): StateKey<T> {
  const key: StateKey<T> = { name, with: (value: T) => ({ key, value }) };
  return key;
}
