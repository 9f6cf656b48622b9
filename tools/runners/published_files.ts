import { matchesGlob } from "node:path";
import config from "../../deno.json" with { type: "json" };

const ROOT = new URL("../../", import.meta.url);

/** The files that `deno publish` would publish, as paths from the root of the project. */
export async function publishedFiles(): Promise<string[]> {
  const found: string[] = [];
  for (const path of config.publish.include) await collect(path, found);
  return found.sort();
}

async function collect(path: string, found: string[]): Promise<void> {
  if (isExcluded(path)) return;
  const { isFile } = await Deno.stat(new URL(path, ROOT));
  if (isFile) return void found.push(path);
  for await (const { name } of Deno.readDir(new URL(path, ROOT))) {
    await collect(`${path}/${name}`, found);
  }
}

function isExcluded(path: string): boolean {
  return config.publish.exclude.some((pattern) => matchesGlob(path, pattern));
}
