import assert from "node:assert/strict";
import type { Driver } from "../driver/driver.ts";
import { DriverError } from "../errors.ts";
import { sqlite } from "./mod.ts";

Deno.test("a second process may use the file, but not its locks, until the first is dead", () =>
  inFolder(async (folder) => {
    const path = `${folder}/jobs.db`;
    const holder = await HolderProcess.start(path);
    const driver = sqlite(path);
    await driver.open();
    await assert.rejects(driver.enableLocks(), (error: unknown) => {
      assert(error instanceof DriverError);
      assert.equal(error.kind, "unusable");
      assert.match(error.message, /another process does.*run one process.*or use the lease form/);
      return true;
    });
    const session = await driver.session();
    await session.query("CREATE TABLE t (id INTEGER)");
    await session.release();
    await holder.kill();
    await driver.enableLocks();
    await driver.close();
  }));

Deno.test("drivers of one process share the locks, by whatever path they reach the file", () =>
  inFolder(async (folder) => {
    await Deno.symlink(`${folder}/jobs.db`, `${folder}/link.db`);
    const [one, other] = [sqlite(`${folder}/jobs.db`), sqlite(`${folder}/link.db`)];
    await opened(one);
    await opened(other);
    const [first, second] = [await one.session(), await other.session()];
    assert.notEqual(await first.tryLock("a"), undefined);
    assert.equal(await second.tryLock("a"), undefined);
    await first.release();
    assert.notEqual(await second.tryLock("a"), undefined);
    await second.release();
    await one.close();
    await assertRefused(`${folder}/jobs.db`);
    await other.close();
    const holder = await HolderProcess.start(`${folder}/jobs.db`);
    await holder.kill();
  }));

Deno.test("a database in memory has locks of its own, and no file", async () => {
  const [one, other] = [sqlite(":memory:"), sqlite(":memory:")];
  await opened(one);
  await opened(other);
  const [first, second] = [await one.session(), await other.session()];
  assert.notEqual(await first.tryLock("a"), undefined);
  assert.notEqual(await second.tryLock("a"), undefined);
  await one.close();
  await other.close();
});

async function opened(driver: Driver): Promise<void> {
  await driver.open();
  await driver.enableLocks();
}

/** A process of its own is refused, and ends with 1. */
async function assertRefused(path: string): Promise<void> {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", HOLDER, path],
    stdin: "null",
  }).output();
  assert.equal(code, 1);
  assert.match(new TextDecoder().decode(stderr), /another process does/);
}

/** A process of its own that has enabled locks of a file. */
class HolderProcess {
  readonly #process: Deno.ChildProcess;

  static async start(path: string): Promise<HolderProcess> {
    const process = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", HOLDER, path],
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const reader = process.stdout.getReader();
    const { done } = await reader.read();
    reader.releaseLock();
    assert(!done, "The process has ended before it had locks");
    return new HolderProcess(process);
  }

  private constructor(process: Deno.ChildProcess) {
    this.#process = process;
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.status;
    await this.#process.stdout.cancel();
  }
}

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const HOLDER = new URL("../../testing/programs/sqlite_lock_holder.ts", import.meta.url).href;
