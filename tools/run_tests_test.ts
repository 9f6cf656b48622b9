import { isRunning, processTree } from "./servers/process_tree.ts";
import { removePath } from "./servers/remove_path.ts";
import { testServer } from "./servers/test_server.ts";

const RUN_TESTS = new URL("./run_tests.ts", import.meta.url).pathname;
const ENV = {
  CI: "",
  NO_COLOR: "1",
  HOLDFAST_TEST_MYSQL: "",
  HOLDFAST_TEST_REDIS: "",
  HOLDFAST_TEST_SERVERS: "redis",
};
const PASSES = `
  Deno.test("reads the url", () => {
    if (!Deno.env.get("HOLDFAST_TEST_REDIS")?.startsWith("redis://")) throw new Error("No url");
  });
`;
const FAILS = `Deno.test("fails", () => { throw new Error("As it should"); });`;
const WAITS = `
  Deno.test("waits", async () => {
    console.log("WAITING");
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  });
`;

testServer("The tests get the url, and what follows the command", async () => {
  const { code, output } = await runTests(PASSES, {}, ["--filter", "reads"]);
  assert(code === 0 && output.includes("1 passed"), `Code ${code}: ${output}`);
  assert(/^Redis: [0-9.]+, started in/m.test(output), output);
});

testServer("The exit code of the tests is passed on", async () => {
  const { code, output } = await runTests(FAILS);
  assert(code === 1 && output.includes("1 failed"), `Code ${code}: ${output}`);
});

testServer("A missing server is named, and a failure in CI only", async () => {
  const env = { HOLDFAST_TEST_SERVERS: "mysql", HOLDFAST_TEST_CACHE: "/dev/null/no-folder" };
  const nothing = `Deno.test("nothing", () => {});`;
  const local = await runTests(nothing, { ...env, CI: "" });
  assert(local.code === 0, `Code ${local.code}: ${local.output}`);
  assert(/^MySQL: missing\. /m.test(local.output), local.output);
  const ci = await runTests(nothing, { ...env, CI: "true" });
  assert(ci.code === 1 && !ci.output.includes("1 passed"), `Code ${ci.code}: ${ci.output}`);
});

testServer("A server that nobody knows is refused", async () => {
  const { code, output } = await runTests(PASSES, { HOLDFAST_TEST_SERVERS: "redis,oracle" });
  assert(code === 1 && !output.includes("passed"), `Code ${code}: ${output}`);
});

for (const [signal, expected] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
  testServer(`${signal} ends the tests and the servers`, async () => {
    const { code, output, tree } = await runTests(WAITS, {}, [], signal);
    assert(code === expected, `Code ${code}: ${output}`);
    assert(tree.length >= 3, `Only ${tree.length} processes ran`);
    for (const pid of tree) assert(!await isRunning(pid), `Process ${pid} is left behind`);
  });
}

interface Ended {
  readonly code: number;
  readonly output: string;
  /** What ran when the signal was sent. */
  readonly tree: readonly number[];
}

/** Runs one test file with a Redis; sends `signal` as soon as its test waits. */
async function runTests(
  text: string,
  env: Record<string, string> = {},
  args: readonly string[] = [],
  signal?: Deno.Signal,
): Promise<Ended> {
  const folder = await Deno.makeTempDir();
  try {
    const file = `${folder}/x_test.ts`;
    await Deno.writeTextFile(file, text);
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", RUN_TESTS, "--no-config", file, ...args],
      env: { ...ENV, ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    let output = "";
    let tree: readonly number[] = [];
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      output += chunk;
      if (signal === undefined || tree.length > 0 || !output.includes("WAITING")) continue;
      tree = await processTree(child.pid);
      child.kill(signal);
    }
    return { code: (await child.status).code, output, tree };
  } finally {
    await removePath(folder);
  }
}

function assert(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}
