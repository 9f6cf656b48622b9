/** Runs by `deno test`, and on Node by `node --test`. */
import { afterEach, beforeEach, describe, it } from "node:test";
import { testAppSuite } from "./test_app_suite.ts";

testAppSuite({ describe, it, beforeEach, afterEach });
