import assert from "node:assert/strict";
import { LockRegistry, shareRegistry } from "./lock_registry.ts";

Deno.test("a lock has one holder, who may take it again, until it is given back", () => {
  const registry = new LockRegistry();
  const [one, other] = [{}, {}];
  assert(registry.tryLock("a", one));
  assert(registry.tryLock("a", one));
  assert(!registry.tryLock("a", other));
  assert(registry.tryLock("A", other));
  registry.unlock(one);
  assert(registry.tryLock("a", other));
  assert(!registry.tryLock("A", one));
});

Deno.test("all of this process share the registry of a file", () => {
  const [one, other] = [shareRegistry("/data/a.db"), shareRegistry("/data/a.db")];
  assert.equal(one, other);
  assert.notEqual(one, shareRegistry("/data/b.db"));
});
