import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Driver } from "../driver/driver.ts";
import type { Steps } from "../driver/steps.ts";
import { DriverError } from "../errors.ts";
import { enterExclusively } from "./exclusive_process.ts";
import { sqlite } from "./mod.ts";

Deno.test("a second process may use the file, but not its locks, until the first is dead", () =>
  inFolder(async (folder) => {
    const path = `${folder}/jobs.db`;
    const holder = await HolderProcess.start(path);
    const driver = sqlite(path);
    await driver.open();
    await assert.rejects(driver.enableLocks(), isUnusable(OTHER_PROCESS));
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

Deno.test("a file beside that may only be read is refused, for many can have it at once", () =>
  inFolder(async (folder) => {
    const beside = `${folder}/jobs.db-holdfast`;
    await Deno.writeTextFile(beside, "");
    // What is put behind the name is a parameter that means nothing; "mode=ro" holds for root too.
    const file = `${pathToFileURL(beside).href}?mode=ro&nothing=`;
    const refused = isUnusable(
      /readonly database.*let this process write that file and its folder/,
    );
    assert.throws(() => enterExclusively(file), refused);
    assert.throws(() => enterExclusively(file), refused, "the refused one does not count");
    const holder = await HolderProcess.start(`${folder}/jobs.db`); // nothing is left locked
    await holder.kill();
  }));

Deno.test("a file beside that cannot be made is refused, and all else goes on", () =>
  inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/jobs.db-holdfast`);
    const driver = sqlite(`${folder}/jobs.db`);
    await driver.open();
    await assert.rejects(driver.enableLocks(), isUnusable(/jobs\.db-holdfast.*cannot be locked/));
    const session = await driver.session();
    await session.query("CREATE TABLE t (id INTEGER)");
    await session.release();
    await Deno.remove(`${folder}/jobs.db-holdfast`);
    await driver.enableLocks();
    await driver.close();
  }));

Deno.test("a handle's file is kept from other processes until the driver is closed", () =>
  inFolder(async (folder) => {
    const path = `${folder}/jobs.db`;
    using handle = new DatabaseSync(path);
    const driver = sqlite({ handle });
    for (let time = 0; time < 2; time++) {
      await opened(driver);
      await driver.enableLocks(); // twice is once
      await assertRefused(path);
      await driver.close();
      assert((await Deno.stat(`${path}-holdfast`)).isFile, "the file is never deleted");
      await (await HolderProcess.start(path)).kill();
    }
  }));

Deno.test("a lock lasts over the transactions of its session, until release", async () => {
  const driver = sqlite(":memory:");
  await opened(driver);
  const [holder, other] = [await driver.session(), await driver.session()];
  assert.equal(await holder.tryLock("a"), await holder.tryLock("a"));
  await holder.transact!(function* (): Steps<void> {});
  await holder.query("SELECT 1");
  assert.equal(await other.tryLock("a"), undefined);
  await holder.release();
  assert.notEqual(await other.tryLock("a"), undefined);
  await other.release();
  await driver.close();
});

function isUnusable(pattern: RegExp) {
  return (error: unknown): true => {
    assert(error instanceof DriverError, String(error));
    assert.equal(error.kind, "unusable");
    assert.match(error.message, pattern);
    return true;
  };
}

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

const OTHER_PROCESS = /another process does.*run one process.*or use the lease form/;
const HOLDER = new URL("../../testing/programs/sqlite_lock_holder.ts", import.meta.url).href;
