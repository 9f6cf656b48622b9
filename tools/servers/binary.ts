/** Folders that hold servers and that a user's PATH often lacks. */
const SYSTEM_FOLDERS: readonly string[] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/** The path of a program: from `folders`, else from PATH; `undefined` where there is none. */
export async function findBinary(
  name: string,
  folders: readonly string[] = [],
): Promise<string | undefined> {
  const path = (Deno.env.get("PATH") ?? "").split(":").filter((folder) => folder !== "");
  for (const folder of [...folders, ...path, ...SYSTEM_FOLDERS]) {
    const file = `${folder}/${name}`;
    if (await isProgram(file)) return file;
  }
  return undefined;
}

async function isProgram(file: string): Promise<boolean> {
  try {
    const info = await Deno.stat(file);
    return info.isFile && ((info.mode ?? 0) & 0o111) !== 0;
  } catch {
    return false;
  }
}
