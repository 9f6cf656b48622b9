import { constants } from "node:fs";
import { copyFile, mkdir, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Driver } from "../../src/driver/driver.ts";
import { deadline } from "../../src/driver/real_time.ts";
import { LeakError } from "../leak_error.ts";
import { hostNow } from "../test_time.ts";
import type { DatabaseHost, Template } from "./database_host.ts";
import { NAME_PREFIX } from "./database_name.ts";
import { untilUnused } from "./until_unused.ts";

/** Test databases in files, each in a folder of its own among the system's temporary files. */
export class SqliteHost implements DatabaseHost {
  readonly #connect: (url: string) => Driver;

  /** @param connect makes a driver for a path */
  constructor(connect: (url: string) => Driver) {
    this.#connect = connect;
  }

  url(name: string): string {
    return join(folderOf(name), "database.sqlite");
  }

  async create(name: string): Promise<void> {
    await mkdir(folderOf(name), { mode: ONLY_MINE });
  }

  async template(name: string): Promise<Template> {
    const open = await this.#untilUnused(name);
    if (open.length > 0) {
      throw new LeakError(
        `Cannot copy the test database ${name}: prepare has returned, but left it open; close ` +
          `what it opened:\n- ${open.join("\n- ")}`,
      );
    }
    return { copyTo: (other) => this.#copy(name, other) };
  }

  async drop(name: string): Promise<readonly string[]> {
    const open = await this.#untilUnused(name);
    await rm(folderOf(name), { recursive: true, force: true, maxRetries: 3 });
    return open;
  }

  async unused(): Promise<readonly string[]> {
    const names = (await readdir(tmpdir())).filter((name) => name.startsWith(NAME_PREFIX));
    const used = await Promise.all(names.map(isWritten));
    return names.filter((_, index) => !used[index]);
  }

  async #copy(template: string, name: string): Promise<void> {
    await this.create(name);
    await copyFile(this.url(template), this.url(name), constants.COPYFILE_FICLONE);
  }

  /**
   * The last connection that is closed removes the log. One that was killed cannot, so another is
   * opened, and closed, before the log says that somebody is still there.
   */
  async #untilUnused(name: string): Promise<readonly string[]> {
    const log = `${this.url(name)}-wal`;
    if (!await exists(log)) return [];
    return await untilUnused(async () => {
      await this.#openAndClose(name);
      return await exists(log)
        ? [`a connection to ${this.url(name)}, in this process or another`]
        : [];
    });
  }

  /** A transaction that was left open would be waited for, for ever. */
  async #openAndClose(name: string): Promise<void> {
    const driver = this.#connect(this.url(name));
    const done = driver.open().then(() => driver.close());
    const late = () => new Error("A transaction is open");
    await deadline(MILLISECONDS_TO_OPEN, done, late).catch(() => {});
  }
}

function folderOf(name: string): string {
  return join(tmpdir(), name);
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(() => true, () => false);
}

/** Files do not tell who has them open, only when they were written. */
async function isWritten(name: string): Promise<boolean> {
  const folder = folderOf(name);
  try {
    const paths = (await readdir(folder)).map((file) => join(folder, file));
    const files = await Promise.all(paths.map((path) => stat(path)));
    return files.some(({ mtimeMs }) => hostNow() - mtimeMs < MILLISECONDS_IN_USE);
  } catch {
    // It belongs to somebody else, or is being removed.
    return true;
  }
}

const ONLY_MINE = 0o700;
const MILLISECONDS_TO_OPEN = 500;
const MILLISECONDS_IN_USE = 3_600_000;
