import { App, Broker, type Subscription } from "../../mod.ts";
import { sqlite } from "../../src/sqlite/mod.ts";
import { TestApp } from "../test_app.ts";
import { jobs, orders } from "./orders.ts";

/** What somebody reads whose test has failed. */
export interface Failure {
  /** The error of the test; empty if it has passed. */
  readonly error: string;
  /** The error of the stop at its end; empty if there was none. */
  readonly leak: string;
  /** What happened. */
  readonly trace: string;
}

/** A wrong handler, and a test of it. */
export interface WrongHandler {
  // deno-lint-ignore no-explicit-any -- whatever its options
  readonly subscription: Subscription<any, any, any, any>;
  /** What the test does; it publishes an order unless given. */
  readonly test?: (app: TestApp) => unknown;
  /** On SQLite in memory unless given. */
  readonly broker?: Broker;
  /** In milliseconds; 50 unless given. */
  readonly patience?: number;
}

/** Runs a test of a service whose handler is wrong. Of stacks only the frames of tests are kept. */
export async function failureOf(wrong: WrongHandler): Promise<Failure> {
  const { subscription, patience = 50, test = publishOrder } = wrong;
  const broker = wrong.broker ?? new Broker(sqlite(":memory:")).createTables(jobs);
  const service = new App({ name: "shop" }).withBroker(broker.include(subscription));
  const app = await TestApp.start(service, { now: 0, patience });
  const error = await errorOf(() => test(app));
  const leak = await errorOf(() => app.stop());
  return { error, leak, trace: withoutPlaces(String(app.trace)) };
}

async function publishOrder(app: TestApp): Promise<void> {
  await app.publish(orders, { order: 7 });
}

async function errorOf(work: () => unknown): Promise<string> {
  try {
    await work();
    return "";
  } catch (error) {
    return withoutPlaces(String(error));
  }
}

function withoutPlaces(text: string): string {
  return text
    .replaceAll(/\n +at (?!.*_test\.ts).*/g, "")
    .replaceAll(/at ([^(\n]* )?\(?file:\S*\/(\w+_test\.ts):\d+:\d+\)?/g, "at $1$2")
    .replaceAll(/\d+ times in \d+ ms/g, "N times in T ms");
}
