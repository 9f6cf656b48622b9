/**
 * Who holds the lock of each key of one database. SQLite has no locks of keys, but all of them are
 * of this process.
 */
export class LockRegistry {
  readonly #holders = new Map<string, object>();

  /** Takes the lock of a key; whether the holder has it now. */
  tryLock(key: string, holder: object): boolean {
    const current = this.#holders.get(key) ?? holder;
    if (current !== holder) return false;
    this.#holders.set(key, holder);
    return true;
  }

  /** Gives back whatever the holder holds. */
  unlock(holder: object): void {
    for (const [key, current] of this.#holders) if (current === holder) this.#holders.delete(key);
  }
}

/** The registry that all connections of this process to one file share. */
export function shareRegistry(file: string): LockRegistry {
  const shared = registries.get(file)?.deref() ?? new LockRegistry();
  registries.set(file, new WeakRef(shared));
  for (const [other, registry] of registries) {
    if (registry.deref() === undefined) registries.delete(other);
  }
  return shared;
}

const registries = new Map<string, WeakRef<LockRegistry>>();
