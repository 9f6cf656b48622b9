import type { Account } from "./account.ts";
import { findBinary } from "./binary.ts";

/** What is run, and how. */
export interface Launch {
  readonly command: readonly string[];
  /** Who it runs as; the caller unless given. */
  readonly account?: Account;
  /** The folder that the program takes for `/`. */
  readonly root?: string;
  /** What the system sends it once the program that started it is gone, however that ended. */
  readonly deathSignal?: "QUIT" | "KILL";
}

/**
 * The command that does so. Every step replaces the one before: the process that is started is the
 * program itself, not a parent of it.
 */
export async function launchCommand(launch: Launch): Promise<readonly string[]> {
  const { command, account, root, deathSignal = "KILL" } = launch;
  const setpriv = await findBinary("setpriv");
  if (setpriv === undefined && account === undefined && root === undefined) return command;
  const changeRoot = root === undefined ? [] : ["chroot", root];
  const changeUser = account === undefined
    ? []
    : [`--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups"];
  // By name: the path within the root may be another.
  return [...changeRoot, "setpriv", ...changeUser, `--pdeathsig=${deathSignal}`, ...command];
}
