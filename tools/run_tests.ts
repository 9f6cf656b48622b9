/**
 * Runs `deno test` with the databases it needs: starts each that can be started here, tells the
 * tests their urls, and ends them afterwards, whatever happens. Arguments go to `deno test`.
 *
 * `HOLDFAST_TEST_SERVERS` names the ones to start, separated by commas, all unless set. One whose
 * variable (`HOLDFAST_TEST_POSTGRES`, …) is set is not started. With `CI=true` none may be missing.
 *
 * @module
 */

import { pgBouncerBinary } from "./servers/pgbouncer_binary.ts";
import type { TestServer } from "./servers/server.ts";
import { signalProcess } from "./servers/signal_process.ts";
import { SHARED_SERVERS, type SharedServer } from "./servers/test_servers.ts";

const TEST = ["test", "-A", "--doc", "--sanitize-ops", "--sanitize-resources"];
const SIGNALS: Readonly<Partial<Record<Deno.Signal, number>>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGTERM: 15,
};

/** What became of one server. */
interface Outcome {
  readonly variable?: string;
  readonly server?: TestServer;
  /** The line to print. */
  readonly text: string;
  readonly missing: boolean;
}

/** The signal that asked this program to end. */
let interruption: Deno.Signal | undefined;
const interrupted = new AbortController();

if (import.meta.main) {
  for (const signal of Object.keys(SIGNALS) as Deno.Signal[]) {
    Deno.addSignalListener(signal, () => interrupt(signal));
  }
  Deno.exit(await run());
}

function interrupt(signal: Deno.Signal): void {
  interruption ??= signal;
  interrupted.abort(new Error(`The tests were ended by ${signal}`));
}

async function run(): Promise<number> {
  const outcomes = await Promise.all([...chosenServers().map(startServer), findPgBouncer()]);
  try {
    return await testWith(outcomes);
  } finally {
    await Promise.all(outcomes.map(({ server }) => server?.[Symbol.asyncDispose]()));
  }
}

async function testWith(outcomes: readonly Outcome[]): Promise<number> {
  if (interruption !== undefined) return interruptedCode(interruption);
  for (const { text } of outcomes) console.log(text);
  if (Deno.env.get("CI") === "true" && outcomes.some(({ missing }) => missing)) {
    console.error("Testing with CI=true needs every one of them: run tools/servers/install.sh");
    return 1;
  }
  const env: Record<string, string> = {};
  for (const { variable, server } of outcomes) {
    if (variable !== undefined && server !== undefined) env[variable] = server.url;
  }
  const code = await runTests(env);
  return interruption === undefined ? code : interruptedCode(interruption);
}

async function runTests(env: Record<string, string>): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), { args: [...TEST, ...Deno.args], env }).spawn();
  const forward = (): void => signalProcess(child.pid, interruption ?? "SIGTERM");
  interrupted.signal.addEventListener("abort", forward);
  const { code } = await child.status;
  interrupted.signal.removeEventListener("abort", forward);
  return code;
}

async function startServer(shared: SharedServer): Promise<Outcome> {
  const { title, variable } = shared;
  if (Deno.env.get(variable)) return { text: `${title}: as ${variable} tells`, missing: false };
  const begin = performance.now();
  try {
    const server = await shared.start({ signal: interrupted.signal });
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    const text = `${title}: ${server.version}, started in ${seconds} s`;
    return { variable, server, text, missing: false };
  } catch (error) {
    return { text: `${title}: missing. ${messageOf(error)}`, missing: true };
  }
}

async function findPgBouncer(): Promise<Outcome> {
  try {
    const { version } = await pgBouncerBinary();
    return { text: `PgBouncer: ${version}, started by the tests that need it`, missing: false };
  } catch (error) {
    return { text: `PgBouncer: missing. ${messageOf(error)}`, missing: true };
  }
}

function chosenServers(): readonly SharedServer[] {
  const known = new Map<string, SharedServer>(Object.entries(SHARED_SERVERS));
  const variable = Deno.env.get("HOLDFAST_TEST_SERVERS");
  if (!variable) return [...known.values()];
  return variable.split(",").map((name) => {
    const server = known.get(name.trim());
    if (server !== undefined) return server;
    throw new Error(
      `Choosing the servers by HOLDFAST_TEST_SERVERS=${variable} failed at "${name}": ` +
        `name some of ${[...known.keys()].join(", ")}`,
    );
  });
}

function interruptedCode(signal: Deno.Signal): number {
  return 128 + (SIGNALS[signal] ?? 0);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
