import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { DeclarationError } from "../errors.ts";
import { Broadcast } from "./broadcast.ts";
import { webhook } from "./webhook.ts";

type Answer = (request: Request, body: string) => Response | Promise<Response>;

function serve(answer: Answer): AsyncDisposable & { readonly url: string } {
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (request) => await answer(request, await request.text()),
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}/hook?token=t`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("a webhook gets what was sent as JSON, in order, signed", async () => {
  const got: unknown[] = [];
  await using server = serve((request, body) => {
    const signature = createHmac("sha256", "hush").update(body).digest("hex");
    assert.equal(request.method, "POST");
    assert.equal(request.headers.get("x-holdfast-signature"), `sha256=${signature}`);
    assert.equal(request.headers.get("content-type"), "application/json");
    assert.equal(request.headers.get("x-more"), "more");
    got.push(JSON.parse(body).message);
    return new Response(null, { status: 204 });
  });
  const channel = webhook(server.url, { secret: "hush", headers: { "x-more": "more" } });
  await using broadcast = new Broadcast({ channels: [channel] });
  await broadcast.open();
  for (const message of ["ä", 2, 3]) broadcast.send("topic", message);
  assert.equal(await broadcast.drain(5_000), true);
  assert.deepEqual(got, ["ä", 2, 3]);
});

Deno.test("a webhook is not signed without a secret, and the header can be chosen", async () => {
  const headers: Headers[] = [];
  await using server = serve((request) => {
    headers.push(request.headers);
    return new Response("read by nobody");
  });
  await webhook(server.url).send("text");
  await webhook(server.url, { secret: "hush", header: "x-signed" }).send("text");
  assert.equal(headers[0]!.has("x-holdfast-signature"), false);
  assert.match(headers[1]!.get("x-signed")!, /^sha256=[0-9a-f]{64}$/);
});

Deno.test("any answer but 2xx is a failure that is tried again and counted", async () => {
  let calls = 0;
  await using server = serve(() => {
    calls++;
    return new Response("no", { status: calls < 3 ? 500 : calls < 4 ? 200 : 302 });
  });
  await using broadcast = new Broadcast({ channels: [webhook(server.url)], retryPause: 1 });
  await broadcast.open();
  broadcast.send("topic", 1);
  broadcast.send("topic", 2);
  await broadcast.drain(5_000);
  const { sent, retried, failed } = broadcast.stats();
  assert.deepEqual([calls, sent, retried, failed], [6, 1, 4, 1]);
  await assert.rejects(webhook(server.url).send("text"), {
    message: `Cannot send to the webhook ${server.url.split("?")[0]}: it answered 302`,
  });
});

Deno.test("a webhook that does not answer in time, or whose fetch hangs, fails", async () => {
  const gate = Promise.withResolvers<void>();
  await using server = serve(async () => {
    await gate.promise;
    return new Response();
  });
  await assert.rejects(webhook(server.url, { timeout: 50 }).send("text"), /no answer within 50 ms/);
  const hanging = webhook(server.url, { timeout: 20, fetch: () => new Promise(() => {}) });
  await assert.rejects(hanging.send("text"), /no answer within 20 ms/);
  gate.resolve();
});

Deno.test("a webhook that is closed gives up the request in flight", async () => {
  const channel = webhook("http://example.com", { fetch: () => new Promise(() => {}) });
  await channel.open({ receive: () => {}, missed: () => {} });
  const sending = assert.rejects(channel.send("text"), /the channel was closed/);
  await channel.close();
  await sending;
});

Deno.test("a webhook refuses what cannot work, and shows no secret", () => {
  for (const url of ["", "hooks", "ftp://example.com", "https://user:pass@example.com"]) {
    assert.throws(() => webhook(url), DeclarationError);
  }
  const url = "https://example.com/hook?token=hush";
  for (
    const options of [
      { secret: "" },
      { header: "no header" },
      { headers: { a: "\n\0" } },
      { retries: 1 },
    ]
  ) {
    assert.throws(() => webhook(url, options), (error) => {
      assert(error instanceof DeclarationError);
      assert(!error.message.includes("hush"));
      return true;
    });
  }
  assert.throws(() => webhook(url, { timeout: -1 }), RangeError);
  assert.equal(webhook(new URL(url)).name, "webhook example.com");
});
