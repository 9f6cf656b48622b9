import { findBinary } from "./binary.ts";
import { cacheFolder } from "./cache_folder.ts";
import { exists } from "./exists.ts";
import { MissingServerError } from "./missing_server_error.ts";
import { pause } from "./pause.ts";
import { removePath } from "./remove_path.ts";
import { runCommand } from "./run_command.ts";

/** Debian's release that has MySQL; the number changes with what is built below. */
const SUITE = "sid";
const NAME = `mysql-${SUITE}-1`;
const BUILD = `${NAME}.build-`;
const LOCK = "owner.lock";

/** A folder for one server within a root that all servers share. */
export interface MysqlRoot extends AsyncDisposable {
  /** A small Debian with MySQL. */
  readonly root: string;
  /** Within the root; gone once disposed. */
  readonly folder: string;
}

/** Opens the cached root; the first time it is built, which takes about a minute. */
export async function openMysqlRoot(signal?: AbortSignal): Promise<MysqlRoot> {
  const cache = cacheFolder();
  const root = `${cache}/${NAME}`;
  await assertPossible(root);
  await Deno.mkdir(cache, { recursive: true });
  using _lock = await lockFile(`${cache}/${NAME}.lock`, signal);
  if (!await exists(root)) await build(cache, root, signal);
  await removeAbandoned(`${root}/tmp`);
  return await createFolder(root);
}

async function assertPossible(root: string): Promise<void> {
  if (Deno.uid() !== 0) {
    throw new MissingServerError(
      "Starting MySQL in a root of its own is for root only: run the tests as root, " +
        "or set HOLDFAST_TEST_MYSQL to the url of a server that they may fill",
    );
  }
  if (await exists(root) || await findBinary("debootstrap") !== undefined) return;
  throw new MissingServerError(
    "Building a root with MySQL found no debootstrap: apt-get install debootstrap",
  );
}

/** Whoever builds is alone, and what is not complete has another name. */
async function build(cache: string, root: string, signal?: AbortSignal): Promise<void> {
  for await (const { name } of Deno.readDir(cache)) {
    if (name.startsWith(BUILD)) await removePath(`${cache}/${name}`);
  }
  console.log("Building a root with MySQL, once, which takes about a minute");
  const target = await Deno.makeTempDir({ dir: cache, prefix: BUILD });
  // It becomes the root of users that are not root.
  await Deno.chmod(target, 0o755);
  try {
    const debootstrap = ["debootstrap", "--variant=minbase", "--include=mysql-server"];
    await runCommand("Building a root with MySQL", {
      command: [...await ownMounts(), ...debootstrap, SUITE, target],
    }, signal);
    for (const waste of ["var/cache/apt", "var/lib/apt", "var/lib/mysql", "usr/share/doc"]) {
      await removePath(`${target}/${waste}`);
    }
    await Deno.rename(target, root);
  } finally {
    await removePath(target);
  }
}

/** What debootstrap mounts must be gone even when it is killed, or its folder cannot be removed. */
async function ownMounts(): Promise<readonly string[]> {
  const unshare = ["unshare", "--mount"];
  try {
    await runCommand("Trying own mounts", { command: [...unshare, "true"] });
    return unshare;
  } catch {
    return [];
  }
}

async function createFolder(root: string): Promise<MysqlRoot> {
  const folder = await Deno.makeTempDir({ dir: `${root}/tmp`, prefix: "holdfast-mysql-" });
  const lock = await lockFile(`${folder}/${LOCK}`);
  return {
    root,
    folder,
    async [Symbol.asyncDispose]() {
      await removePath(folder);
      lock.close();
    },
  };
}

/** Removes the folders of servers whose test run was killed: nobody holds their lock. */
async function removeAbandoned(parent: string): Promise<void> {
  for await (const { name } of Deno.readDir(parent)) {
    const folder = `${parent}/${name}`;
    if (!name.startsWith("holdfast-mysql-") || !await exists(`${folder}/${LOCK}`)) continue;
    using lock = await Deno.open(`${folder}/${LOCK}`, { write: true });
    if (await lock.tryLock(true)) await removePath(folder);
  }
}

async function lockFile(path: string, signal?: AbortSignal): Promise<Deno.FsFile> {
  const file = await Deno.open(path, { create: true, write: true });
  try {
    while (!await file.tryLock(true)) {
      await pause(100);
      signal?.throwIfAborted();
    }
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}
