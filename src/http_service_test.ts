import assert from "node:assert/strict";
import { TestApp } from "../testing/mod.ts";
import { App } from "./app.ts";
import type { HttpHandler } from "./http_service.ts";

const SECOND = 1_000;

/** An app that serves HTTP on a free port, and where. */
function serving(handler: HttpHandler, options: { drain?: number; preStop?: number } = {}) {
  const listening = Promise.withResolvers<string>();
  const app = new App({ name: "web", drain: SECOND, abortTimeout: SECOND, ...options }).serve({
    port: 0,
    hostname: "127.0.0.1",
    onListen: ({ port }) => listening.resolve(`http://127.0.0.1:${port}`),
  }, handler);
  return { app, url: listening.promise };
}

async function textOf(response: Response): Promise<readonly [number, string]> {
  return [response.status, await response.text()];
}

Deno.test("requests are answered, and probes tell how the app is", async () => {
  const { app, url } = serving((request) => new Response(new URL(request.url).pathname));
  assert.equal(app.isReady, false);
  const running = await app.start();
  assert.equal(app.isReady, true);
  assert.deepEqual(await textOf(await fetch(`${await url}/a`)), [200, "/a"]);
  assert.deepEqual(await textOf(await fetch(`${await url}/livez`)), [200, "ok"]);
  assert.deepEqual(await textOf(await fetch(`${await url}/readyz`)), [200, "ok"]);
  const { failures, aborted } = await running.stop();
  assert.deepEqual([failures, aborted], [[], false]);
  await assert.rejects(fetch(await url));
  assert.equal(app.isReady, false);
});

Deno.test("a request in flight finishes, and no new connection is accepted", async () => {
  const arrived = Promise.withResolvers<void>();
  const { app, url } = serving(async () => {
    arrived.resolve();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return new Response("done");
  });
  const running = await app.start();
  const answer = fetch(await url);
  await arrived.promise;
  const stopping = running.stop();
  await new Promise((resolve) => setTimeout(resolve, 50));
  await assert.rejects(fetch(await url));
  assert.deepEqual(await textOf(await answer), [200, "done"]);
  assert.equal((await stopping).aborted, false);
});

Deno.test("a request that takes longer than the drain gets 503 and is told to come back", async () => {
  const arrived = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const { app, url } = serving(async () => {
    arrived.resolve();
    await release.promise;
    return new Response("too late");
  }, { drain: 100 });
  const running = await app.start();
  const answer = fetch(await url);
  await arrived.promise;
  const report = await running.stop();
  const response = await answer;
  assert.deepEqual([response.status, response.headers.get("retry-after")], [503, "5"]);
  await response.body?.cancel();
  assert.equal(report.aborted, true);
  release.resolve();
});

Deno.test("while preStop lasts the app serves, and says that it is not ready", async () => {
  const { app, url } = serving(() => new Response("ok"), { preStop: 300 });
  const running = await app.start();
  const stopping = running.stop();
  assert.deepEqual(await textOf(await fetch(`${await url}/readyz`)), [503, "unavailable"]);
  assert.deepEqual(await textOf(await fetch(`${await url}/livez`)), [200, "ok"]);
  assert.deepEqual(await textOf(await fetch(await url)), [200, "ok"]);
  await stopping;
  await assert.rejects(fetch(await url));
});

Deno.test("an answer that is still being sent does not keep the app from stopping", async () => {
  const { app, url } = serving(() => new Response(new ReadableStream()), { drain: 100 });
  const running = await app.start();
  const response = await fetch(await url);
  const report = await running.stop();
  assert.equal(report.aborted, true);
  assert.match(report.failures[1]!, /"http" was not closed: an answer is still being sent/);
  await response.body?.cancel();
});

Deno.test("a port that is in use ends the start, and says which part failed", async () => {
  const { app, url } = serving(() => new Response("ok"));
  await using running = await app.start();
  const port = Number(new URL(await url).port);
  const other = new App({ name: "other" })
    .serve({ port, hostname: "127.0.0.1" }, () => new Response("no"));
  await assert.rejects(other.start(), /component "http" did not start: .*in use/i);
  void running;
});

Deno.test("a handler that throws is a 500, and the app goes on", async () => {
  const { app, url } = serving(() => {
    throw new Error("No luck");
  });
  await using running = await app.start();
  assert.equal((await textOf(await fetch(await url)))[0], 500);
  void running;
});

Deno.test("a handler lives in the app's virtual time", async () => {
  const start = Date.UTC(2030, 0);
  const { app, url } = serving(() => Response.json(Date.now()));
  await using test = await TestApp.start(app, { now: start });
  assert.equal(await (await fetch(await url)).json(), start);
  void test;
});
