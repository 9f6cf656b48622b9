/** What the suite uses of the library: what users have, and the driver's types. */
export * from "../../mod.ts";
export type { Driver } from "../../src/driver/driver.ts";
export { FakeTimeError, TestApp } from "../mod.ts";
