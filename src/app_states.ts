import type { States } from "./delivery_in_work.ts";
import { DeclarationError } from "./errors.ts";
import type { StateKey, StateValue } from "./state.ts";

/** What the keys of one run of an app stand for. A replaced key keeps what it was replaced by. */
export class AppStates implements States {
  readonly #values = new Map<unknown, unknown>();
  readonly #replaced: ReadonlySet<unknown>;

  constructor(replaced: readonly StateValue[]) {
    for (const { key, value } of replaced) this.#values.set(key, value);
    this.#replaced = new Set(replaced.map(({ key }) => key));
  }

  set<T>(key: StateKey<T>, value: T): void {
    if (!this.#replaced.has(key)) this.#values.set(key, value);
  }

  get<T>(key: StateKey<T>): T {
    if (this.#values.has(key)) return this.#values.get(key) as T;
    throw new DeclarationError(
      `Cannot get state "${key.name}": nothing has set it; ` +
        `call app.set(…) with this very key in an onStartup hook`,
    );
  }
}
