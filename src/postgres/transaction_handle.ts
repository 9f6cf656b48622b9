import type { PostgresStatements } from "./client.ts";

/**
 * A transaction of postgres.js for others to write through, for as long as it is open: what is sent on
 * a connection that is gone would end the process, and on one that was given back would go to whoever
 * has it next.
 *
 * @param check throws when the transaction is not open
 */
export function transactionHandle(
  sql: PostgresStatements,
  check: () => void,
): PostgresStatements {
  return new Proxy(sql, {
    apply(target, self, args) {
      check();
      return Reflect.apply(target as unknown as () => unknown, self, args);
    },
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        check();
        return Reflect.apply(value, target, args);
      };
    },
  });
}
