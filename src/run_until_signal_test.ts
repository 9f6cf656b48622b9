import assert from "node:assert/strict";

Deno.test("a first signal lets handlers finish, and the process ends with 0", async () => {
  const app = await start({ handler: 500 });
  app.kill("SIGTERM");
  assert.deepEqual(await ended(app), { code: 0, lines: ["started", "finished", "closed"] });
});

Deno.test("a second signal aborts handlers, and the process ends with 1", async () => {
  const app = await start({ handler: 60_000 });
  app.kill("SIGTERM");
  await new Promise((resolve) => setTimeout(resolve, 200));
  app.kill("SIGINT");
  assert.deepEqual(await ended(app), { code: 1, lines: ["started", "aborted", "closed"] });
});

Deno.test("a signal during the last hooks of the start stops the app in good order after them", async () => {
  const app = await start({ handler: 200, startup: 1_000 });
  app.kill("SIGTERM");
  assert.deepEqual(await ended(app), { code: 0, lines: ["started", "finished", "closed"] });
});

Deno.test("a third signal ends the process, whatever keeps it", async () => {
  const app = await start({ handler: 60_000, shutdown: 60_000 });
  const begin = performance.now();
  for (let n = 0; n < 3; n++) {
    app.kill("SIGTERM");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.equal((await ended(app)).code, 1);
  assert(performance.now() - begin < 5_000);
});

/** The app in a process of its own. Resolves when its handler is at work. */
async function start(
  times: { handler: number; startup?: number; shutdown?: number },
): Promise<Deno.ChildProcess> {
  const app = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", PROGRAM, JSON.stringify(times)],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = app.stdout.getReader();
  const { value } = await reader.read();
  assert.equal(new TextDecoder().decode(value), "started\n");
  reader.releaseLock();
  return app;
}

async function ended(app: Deno.ChildProcess): Promise<{ code: number; lines: string[] }> {
  let output = "";
  for await (const chunk of app.stdout) output += new TextDecoder().decode(chunk);
  return { code: (await app.status).code, lines: ["started", ...output.trim().split("\n")] };
}

const PROGRAM = new URL("../testing/programs/signals.ts", import.meta.url).href;
