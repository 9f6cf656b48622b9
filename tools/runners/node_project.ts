import config from "../../deno.json" with { type: "json" };
import { findBinary } from "../servers/binary.ts";
import { throwawayFolder } from "../servers/throwaway_folder.ts";
import { publishedFiles } from "./published_files.ts";

const ROOT = new URL("../../", import.meta.url);
const RUNNERS = "testing/runners";
/** What the package is called in `node_modules`, and the folder beside it that this links to. */
const PACKAGE = config.name;
const COPY = "holdfast";
/** The first Node that runs TypeScript without a flag. */
const LEAST = [22, 18];
/** The one that is installed where there is none, from `npm:node-<system>-<processor>`. */
const NODE = "^26.0.0";

/** A project of somebody who uses the package on Node, gone once disposed. */
export interface NodeProject extends AsyncDisposable {
  /** Its path. */
  readonly folder: string;
  /** Runs Node in it, to the end; the text is all that Node printed. */
  run(...args: string[]): Promise<{ readonly success: boolean; readonly text: string }>;
}

/**
 * Makes a project that has the package as it would be published, its dependencies, Vitest, the files
 * of `testing/runners/` and, where the system's is missing or old, Node.
 */
export async function nodeProject(): Promise<NodeProject> {
  const folder = await throwawayFolder("node");
  try {
    const installed = await findNode();
    await copyFiles(folder.path);
    await install(folder.path, installed === undefined ? [nodePackage()] : []);
    await linkPackage(folder.path);
    const node = installed ?? `${folder.path}/node_modules/${nodePackage()}/bin/node`;
    return {
      folder: folder.path,
      run: (...args) => run(node, args, folder.path),
      [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
    };
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
}

async function findNode(): Promise<string | undefined> {
  const node = await findBinary("node");
  if (node === undefined) return undefined;
  const { text } = await run(node, ["--version"]);
  const [major = 0, minor = 0] = text.slice(1).split(".").map(Number);
  const [leastMajor = 0, leastMinor = 0] = LEAST;
  const isNew = major > leastMajor || (major === leastMajor && minor >= leastMinor);
  return isNew ? node : undefined;
}

/** Such packages hold nothing but the program: no script has to run. */
function nodePackage(): string {
  return `node-${Deno.build.os}-${Deno.build.arch === "aarch64" ? "arm64" : "x64"}`;
}

async function copyFiles(folder: string): Promise<void> {
  for (const path of await publishedFiles()) await copy(path, `${folder}/${COPY}/${path}`);
  for await (const { name } of Deno.readDir(new URL(RUNNERS, ROOT))) {
    await copy(`${RUNNERS}/${name}`, `${folder}/${name}`);
  }
}

async function copy(path: string, target: string): Promise<void> {
  await Deno.mkdir(target.slice(0, target.lastIndexOf("/")), { recursive: true });
  await Deno.copyFile(new URL(path, ROOT), target);
}

async function install(folder: string, more: readonly string[]): Promise<void> {
  const dependencies: Record<string, string> = { ...await dependenciesOf(`${folder}/${COPY}`) };
  dependencies.vitest = versionOf(config.imports.vitest);
  for (const name of more) dependencies[name] = NODE;
  await writeJson(`${folder}/package.json`, { private: true, type: "module", dependencies });
  const { success, text } = await run(Deno.execPath(), ["install"], folder);
  if (!success) throw new Error(`Installing ${Object.keys(dependencies)} failed:\n${text}`);
}

/** The npm packages that the published files import, with their versions. */
async function dependenciesOf(folder: string): Promise<Record<string, string>> {
  const files = (await publishedFiles()).filter((path) => path.endsWith(".ts"));
  const texts = await Promise.all(files.map((path) => Deno.readTextFile(`${folder}/${path}`)));
  const text = texts.join("\n");
  const imports = Object.entries(config.imports)
    .filter(([name]) => text.includes(`from "${name}"`) || text.includes(`from "${name}/`));
  return Object.fromEntries(imports.map(([name, target]) => [name, versionOf(target)]));
}

/** `^1.2.0` of `npm:name@^1.2.0`. */
function versionOf(target: string): string {
  return target.slice(target.lastIndexOf("@") + 1);
}

/** By a link: Node strips the types of what it reaches by its real path outside `node_modules`. */
async function linkPackage(folder: string): Promise<void> {
  const { name, version, exports } = config;
  await writeJson(`${folder}/${COPY}/package.json`, { name, version, type: "module", exports });
  const link = `${folder}/node_modules/${PACKAGE}`;
  await Deno.mkdir(link.slice(0, link.lastIndexOf("/")), { recursive: true });
  await Deno.symlink(`../../${COPY}`, link);
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await Deno.writeTextFile(path, JSON.stringify(value, null, 2));
}

async function run(
  program: string,
  args: readonly string[],
  cwd?: string,
): Promise<{ success: boolean; text: string }> {
  const child = new Deno.Command(program, { args: [...args], cwd, stdin: "null" });
  const { success, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { success, text: decoder.decode(stdout) + decoder.decode(stderr) };
}
