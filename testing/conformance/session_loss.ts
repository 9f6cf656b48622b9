import assert from "node:assert/strict";
import { ack, type Driver, DriverError, TestApp } from "./holdfast.ts";
import { HoldingProcess } from "./holding_process.ts";
import type { JobHandler, LeaseService } from "./lease_service.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

/** A form in which a session holds the row. */
export interface SessionForm {
  readonly form: "row lock" | "advisory lock";
  readonly service: (driver: Driver, handle: JobHandler) => LeaseService;
  /** The attempt of the delivery after a crash, and how that is called. */
  readonly next: { readonly attempt: number; readonly name: string };
  /** What else has to hold when the row has been handled again. */
  readonly afterwards?: (test: TestApp, database: TestDatabase) => Promise<void>;
}

/** What becomes of a row when the session that holds it is gone. */
export function sessionLossTests(
  { form, service, next, afterwards = () => Promise.resolve() }: SessionForm,
): readonly ConformanceTest[] {
  return [
    {
      name:
        `the row of a killed process is claimed by another within a second, as the ${next.name}`,
      needs: "a server",
      async run(database) {
        await using holder = await HoldingProcess.start(database.address!, { form });
        const { app, subscription } = service(database.connect(), () => ack());
        await using test = await TestApp.startLive(app);
        await test.advance({ milliseconds: 1_200 });
        test.subscriber(subscription).assertNotCalled();
        const killed = Date.now();
        await holder.kill();
        while (test.deliveries.length === 0 && Date.now() < killed + 5_000) {
          await test.advance({ milliseconds: 20 });
        }
        const [delivery] = test.deliveries;
        assert.equal(delivery?.attempt, next.attempt);
        assert(delivery.startedAt - killed < 1_000, `${delivery.startedAt - killed} ms`);
        await test.settled();
        await afterwards(test, database);
      },
    },
    {
      name: "a connection cut at the server aborts its handler, the row is back, the loop goes on",
      needs: "a server",
      async run(database) {
        const reasons: unknown[] = [];
        const { app, queue, subscription } = service(
          database.connect(),
          async (_, { signal }) => {
            if (reasons.length > 0) return;
            await new Promise((resolve) => {
              const timer = setTimeout(resolve, 10_000);
              signal.addEventListener("abort", () => {
                clearTimeout(timer);
                reasons.push(signal.reason);
                resolve(undefined);
              });
            });
          },
        );
        await using test = await TestApp.startLive(app);
        await test.publish(queue, { name: "a" });
        await database.cut!();
        const end = Date.now() + 10_000;
        while (test.deliveries.length < 2 && Date.now() < end) {
          await test.advance({ milliseconds: 50 });
        }
        assert(reasons[0] instanceof DriverError);
        assert.equal(reasons[0].kind, "disconnected");
        assert.equal(test.deliveries[0]?.settled, false);
        await test.settled();
        test.subscriber(subscription).assertCalled(2).assertSettled(ack());
        assert.equal(test.deliveries[1]?.attempt, next.attempt);
        await afterwards(test, database);
      },
    },
  ];
}
