import { timeScope } from "../src/clock.ts";

/** A transaction's handle in the manner of `mysql2/promise`. */
type Handle = Readonly<Record<"execute" | "query", (...args: unknown[]) => Promise<unknown>>>;

/**
 * The same handle, which lets the database's clock stand where the test's does before each statement
 * that a handler sends by it. A clock that cannot be set is no error: the statement has its own.
 */
export function clockedHandle(handle: object, setClock: () => Promise<void>): object {
  const known = clocked.get(handle);
  if (known !== undefined) return known;
  const { execute, query } = handle as Handle;
  const withClock = (send: Handle["query"]): Handle["query"] => async (...args) => {
    await timeScope.run(undefined, setClock).catch(() => {});
    return await send(...args);
  };
  const made: Handle = { execute: withClock(execute), query: withClock(query) };
  clocked.set(handle, made);
  return made;
}

const clocked = new WeakMap<object, Handle>();
