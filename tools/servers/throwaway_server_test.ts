import { exists } from "./exists.ts";
import { pause } from "./pause.ts";
import { startPostgres } from "./postgres.ts";
import { isRunning, processTree } from "./process_tree.ts";
import { removePath } from "./remove_path.ts";
import { testServer } from "./test_server.ts";

testServer("A server that cannot start tells why, and leaves nothing", async () => {
  const message = await failedStart(`startPostgres({ settings: { shared_buffers: "much" } })`);
  assert(message.includes("shared_buffers"), `It told: ${message}`);
});

testServer("A start that is given up leaves nothing", async () => {
  for (const delay of [1, 50, 100, 200, 400]) {
    const message = await failedStart(`startPostgres({ signal: AbortSignal.timeout(${delay}) })`);
    assert(message.includes("aborted due to timeout"), `It told: ${message}`);
  }
});

testServer("A disposed server does not start again", async () => {
  const server = await startPostgres();
  await server[Symbol.asyncDispose]();
  const error = await server.restart().then(() => undefined, (error: Error) => error);
  assert(error?.message.includes("is disposed") === true, `It ended with ${error}`);
  assert(!await exists(server.folder), `Folder ${server.folder} is left behind`);
});

testServer("A server ends with the program that started it, however that ends", async () => {
  const owner = startProgram(`
    const server = await startPostgres();
    console.log(JSON.stringify([server.pid, server.folder]));
    setInterval(() => {}, 1000);
  `);
  const { value } = await owner.stdout.pipeThrough(new TextDecoderStream()).getReader().read();
  const [pid, folder] = JSON.parse(value ?? "[]");
  const tree = await processTree(pid);
  assert(tree.length > 1, `Process ${pid} has no children`);
  owner.kill("SIGKILL");
  await owner.status;
  const deadline = Date.now() + 10_000;
  for (const pid of tree) {
    while (await isRunning(pid) && Date.now() < deadline) await pause();
    assert(!await isRunning(pid), `Process ${pid} is left behind`);
  }
  await removePath(folder);
});

/** The message of a start that fails, in a program and a temporary folder of its own. */
async function failedStart(start: string): Promise<string> {
  const folder = await Deno.makeTempDir();
  await Deno.chmod(folder, 0o755);
  const program = startProgram(
    `
      const { message } = await ${start}.catch((error) => error);
      const tree = await processTree(Deno.pid);
      console.log(JSON.stringify([tree.length, message]));
    `,
    { TMPDIR: folder },
  );
  const { stdout } = await program.output();
  const [processes, message] = JSON.parse(new TextDecoder().decode(stdout));
  const left = [...Deno.readDirSync(folder)].map(({ name }) => name);
  await removePath(folder);
  assert(processes === 1, `${processes - 1} processes are left behind`);
  assert(left.length === 0, `${left.join(", ")} is left behind`);
  return message ?? "Nothing: it started";
}

function startProgram(text: string, env: Record<string, string> = {}): Deno.ChildProcess {
  const from = (name: string): string => JSON.stringify(new URL(name, import.meta.url).href);
  const imports = `
    import { startPostgres } from ${from("./postgres.ts")};
    import { processTree } from ${from("./process_tree.ts")};
  `;
  return new Deno.Command(Deno.execPath(), {
    args: ["eval", imports + text],
    env,
    stdout: "piped",
  }).spawn();
}

function assert(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}
