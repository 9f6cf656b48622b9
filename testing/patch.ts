import * as nodeTimers from "node:timers";
import { DeclarationError } from "../src/errors.ts";

/** One function that tells or takes time, and what stands in its place while a clock is virtual. */
export class Patch {
  /** What stood there last, before the replacement. */
  original: unknown;
  readonly #name: string;
  readonly #holder: object;
  readonly #key: string;
  readonly #replacement: object;
  #descriptor: PropertyDescriptor;

  /**
   * Gives the replacement the original's name and length.
   *
   * @param name what the user knows it by
   */
  constructor(name: string, holder: object, key: string, replacement: object) {
    this.#name = name;
    this.#holder = holder;
    this.#key = key;
    this.#replacement = replacement;
    this.original = Reflect.get(holder, key);
    this.#descriptor = Object.getOwnPropertyDescriptor(holder, key)!;
    for (const each of ["name", "length"] as const) {
      const descriptor = Object.getOwnPropertyDescriptor(this.original, each)!;
      Object.defineProperty(replacement, each, descriptor);
    }
  }

  /**
   * Refuses to go on where another fake clock is in place.
   *
   * @throws {DeclarationError} if somebody else has replaced the original
   */
  refuseForeign(): void {
    const { current } = this;
    if (current === this.#replacement) return;
    if (current === this.original && this.#isGenuine) return;
    throw new DeclarationError(
      `Cannot start a FakeTime: ${this.#name} is already replaced, probably by another fake ` +
        `clock; restore it first`,
    );
  }

  /** Puts the replacement in place, unless it is. */
  install(): void {
    if (this.current === this.#replacement) return;
    this.original = this.current;
    this.#descriptor = Object.getOwnPropertyDescriptor(this.#holder, this.#key)!;
    Object.defineProperty(this.#holder, this.#key, {
      value: this.#replacement,
      enumerable: this.#descriptor.enumerable,
      writable: true,
      configurable: true,
    });
  }

  /** Leaves alone what somebody else put over the replacement since; theirs to take back. */
  remove(): void {
    if (this.current !== this.#replacement) return;
    Object.defineProperty(this.#holder, this.#key, this.#descriptor);
  }

  /** What stands there now. */
  get current(): unknown {
    return Reflect.get(this.#holder, this.#key);
  }

  /** Tells a fake global that was there before this module: the built-in, or the module, knows better. */
  get #isGenuine(): boolean {
    if (this.#holder !== globalThis) return true;
    const genuine = (nodeTimers as Record<string, unknown>)[this.#key];
    if (genuine !== undefined) return this.original === genuine;
    const text = Function.prototype.toString.call(this.original);
    return this.#key !== "Date" || /\[native code\]/.test(text);
  }
}
