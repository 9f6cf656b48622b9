import type { Account } from "./account.ts";
import { removePath } from "./remove_path.ts";

/** A folder that is gone once disposed. */
export interface ThrowawayFolder extends AsyncDisposable {
  readonly path: string;
}

/** Creates a temporary folder that belongs to `account`, or to the caller. */
export async function throwawayFolder(
  name: string,
  account?: Account,
  parent?: string,
): Promise<ThrowawayFolder> {
  const path = await Deno.makeTempDir({ prefix: `holdfast-${name}-`, dir: parent });
  if (account !== undefined) await Deno.chown(path, account.uid, account.gid);
  return { path, [Symbol.asyncDispose]: () => removePath(path) };
}
