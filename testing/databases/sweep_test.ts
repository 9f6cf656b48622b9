import assert from "node:assert/strict";
import { mkdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onEachServer, run, SQLITE, type TestedDatabase } from "./databases_for_test.ts";
import { TestDatabases } from "./test_databases.ts";

onEachServer("what a killed process left is dropped, and nothing else", async (on) => {
  const { url, connect } = on;
  const old = nameOf(OLD);
  const inUse = nameOf(OLD);
  const young = nameOf(new Date());
  const foreign = `holdfast_test_${crypto.randomUUID().slice(0, 8)}`;
  const all = [old, inUse, young, foreign];
  const create = all.map((name) => `CREATE DATABASE ${name}`);
  await run(connect(url), ...create);
  const user = connect(Object.assign(new URL(url), { pathname: inUse }).href);
  await user.open();
  const session = await user.session();
  await session.query("SELECT 1");
  try {
    await using _ = await new TestDatabases({ url, connect }).create();
    assert.deepEqual(await stillThere(on, all), [inUse, young, foreign]);
  } finally {
    await session.release();
    await user.close();
    await run(connect(url), ...all.map((name) => `DROP DATABASE IF EXISTS ${name}`));
  }
});

onEachServer("several that sweep at once do not disturb each other", async (on) => {
  const { url, connect } = on;
  const old = Array.from({ length: 4 }, () => nameOf(OLD));
  await run(connect(url), ...old.map((name) => `CREATE DATABASE ${name}`));
  const all = await Promise.all(
    Array.from({ length: 4 }, () => new TestDatabases({ url, connect }).create()),
  );
  await Promise.all(all.map((database) => database[Symbol.asyncDispose]()));
  assert.deepEqual(await stillThere(on, old), []);
});

Deno.test("SQLite: what a killed process left is removed, and nothing else", async () => {
  const { url, connect, names } = SQLITE;
  const old = nameOf(OLD);
  const inUse = nameOf(OLD);
  const young = nameOf(new Date());
  const foreign = `holdfast_test_${crypto.randomUUID().slice(0, 8)}`;
  const all = [old, inUse, young, foreign];
  const folders = all.map((name) => join(tmpdir(), name));
  try {
    for (const folder of folders) {
      await mkdir(folder);
      await writeFile(join(folder, "database.sqlite"), "");
      if (!folder.endsWith(inUse)) await utimes(join(folder, "database.sqlite"), OLD, OLD);
    }
    await using _ = await new TestDatabases({ url, connect }).create();
    assert.deepEqual(await stillThere({ names }, all), [inUse, young, foreign]);
  } finally {
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  }
});

/** A little more than the hour that is always waited. */
const OLD = new Date(Date.now() - 3_700_000);

function nameOf(time: Date): string {
  const [day, clock] = time.toISOString().replace(/[-:]/g, "").split(/[T.]/);
  return `holdfast_test_${day}_${clock}_1_${crypto.randomUUID().slice(0, 8)}`;
}

async function stillThere(
  { names }: Pick<TestedDatabase, "names">,
  all: readonly string[],
): Promise<string[]> {
  const there = await names();
  return all.filter((name) => there.includes(name));
}
