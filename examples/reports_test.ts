import { ack, LeaseLostError } from "@holdfast/inbox";
import { TestApp } from "@holdfast/inbox/testing";
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { render, reports, service } from "./reports.ts";

Deno.test("a five-minute report is delivered once", async () => {
  await using app = await TestApp.start(service(":memory:")); // the clock is virtual
  await app.publish(reports, { id: 7, pages: 300 });
  await app.advance({ minutes: 5 }); // instantly; 9 renewals ran
  app.subscriber(render).assertCalledOnce().assertSettled(ack());
  assert.equal(renewalsOf(app), 9);
});

Deno.test("only the row whose lease ended comes back", async () => {
  const file = await Deno.makeTempFile({ suffix: ".db" });
  try {
    await using app = await TestApp.startLive(service(file)); // real clock, real polls
    app.subscriber(render).assertNotCalled();
    leaveBehind(file, { id: 1, pages: 0 }, Date.now() - 1_000);
    leaveBehind(file, { id: 2, pages: 0 }, Date.now() + 60_000);
    await app.advance({ milliseconds: 1_500 }); // longer than the poll interval of 1 s
    app.subscriber(render).assertCalledOnce().assertReceived({ id: 1, pages: 0 });
    assert.deepEqual(
      await app.query("SELECT json_extract(payload, '$.id') AS id, attempt FROM report_jobs"),
      [Object.assign(Object.create(null), { id: 2n, attempt: 2n })],
    );
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("a report whose lease was lost is rendered again as attempt 2", async () => {
  await using app = await TestApp.start(service(":memory:"));
  await app.publish(reports, { id: 7, pages: 180 });

  app.pauseRenewals(); // as if the process stood still
  await app.advance({ seconds: 62 });
  const [lost] = app.deliveries;
  assert(lost?.error instanceof LeaseLostError); // its signal aborted; its ack would change nothing
  assert(!lost.settled);

  app.resumeRenewals();
  await app.advance({ minutes: 3 });
  app.subscriber(render).assertCalled(2).assertSettled(ack());
  assert.equal(app.deliveries[1]?.attempt, 2);
});

/** A row as another process left it: claimed once, leased until then. */
function leaveBehind(file: string, report: { id: number; pages: number }, lockedUntil: number) {
  using database = new DatabaseSync(file);
  database
    .prepare("INSERT INTO report_jobs (payload, attempt, locked_until) VALUES (?, 2, ?)")
    .run(JSON.stringify(report), BigInt(lockedUntil));
}

function renewalsOf(app: TestApp): number {
  return app.trace.entries.filter(({ event }) => event.type === "renewed").length;
}
