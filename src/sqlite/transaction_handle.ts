/**
 * A handle for others to write through for as long as a transaction is open: afterwards what they
 * write would be committed by itself, or become part of somebody else's transaction.
 *
 * @param check throws when the transaction is not open
 */
export function transactionHandle(handle: object, check: () => void): object {
  return new Proxy(handle, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        check();
        return Reflect.apply(value, target, args);
      };
    },
    set(target, name, value) {
      return Reflect.set(target, name, value, target);
    },
  });
}
