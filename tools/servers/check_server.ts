import { exists } from "./exists.ts";
import { isRunning, processTree } from "./process_tree.ts";
import type { TestServer } from "./server.ts";

/** A kind of server, and how to tell that it works. */
export interface CheckedServer {
  start(): Promise<TestServer>;
  /** Puts a mark into the server: more than one is kept. */
  write(url: string): Promise<void>;
  /** How many marks there are. */
  count(url: string): Promise<number>;
  /** Whether the data outlives the process. */
  readonly durable: boolean;
}

/** Takes a server from its start through its ends to the point where nothing of it is left. */
export async function checkServer(checked: CheckedServer): Promise<void> {
  const server = await checked.start();
  let pids: readonly number[] = [];
  {
    await using _server = server;
    await assertWorks(server, checked, 1);
    await assertRestarts(server, () => server.kill());
    await assertWorks(server, checked, 2);
    await assertRestarts(server, () => server.stop("immediate"));
    await assertWorks(server, checked, 3);
    await assertRestarts(server, () => server.stop());
    await assertWorks(server, checked, 4);
    pids = await processTree(server.pid);
  }
  for (const pid of pids) assert(!await isRunning(pid), `Process ${pid} is left behind`);
  assert(!await exists(server.folder), `Folder ${server.folder} is left behind`);
  await server[Symbol.asyncDispose]();
}

async function assertWorks(
  server: TestServer,
  checked: CheckedServer,
  marks: number,
): Promise<void> {
  const expected = checked.durable ? marks : 1;
  await checked.write(server.url);
  const count = await checked.count(server.url);
  assert(count === expected, `${server.url} holds ${count} marks, not ${expected}`);
  assert(/^[0-9]+\.[0-9]/.test(server.version), `The version is ${server.version}`);
}

async function assertRestarts(server: TestServer, end: () => Promise<void>): Promise<void> {
  const { url } = server;
  const tree = await processTree(server.pid);
  await end();
  for (const pid of tree) assert(!await isRunning(pid), `Process ${pid} goes on`);
  assert(!await isOpen(Number(new URL(url).port)), `${url} is still open`);
  await server.restart();
  assert(server.url === url, `The url was ${url} and became ${server.url}`);
}

async function isOpen(port: number): Promise<boolean> {
  try {
    using _connection = await Deno.connect({ hostname: "127.0.0.1", port });
    return true;
  } catch {
    return false;
  }
}

function assert(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}
