import assert from "node:assert/strict";
import { App } from "./app.ts";
import { DeclarationError } from "./errors.ts";

Deno.test("deadlines that do not add up are refused at start, with the sum", async () => {
  const app = new App({ name: "slow", preStop: { seconds: 15 }, drain: { seconds: 44 } });
  await assert.rejects(app.start(), (error: unknown) => {
    assert(error instanceof DeclarationError);
    assert.match(
      error.message,
      /preStop 15 s \+ drain 44 s \+ abortTimeout 5 s \+ closeTimeout 5 s = 69 s.*grace, 60 s/,
    );
    return true;
  });
  assert.equal(app.isReady, false);
});

Deno.test("the defaults leave time to spare", async () => {
  const app = new App({ name: "plain" });
  assert.deepEqual(app.deadlines, {
    preStop: 0,
    drain: 44_000,
    abortTimeout: 5_000,
    closeTimeout: 5_000,
    grace: 60_000,
  });
  await (await app.start()).stop();
});
