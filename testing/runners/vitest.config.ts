import type { ViteUserConfig } from "vitest/config";

/** How Vitest finds the tests of this folder that it runs. */
const config: ViteUserConfig = { test: { include: ["vitest_runner.ts"] } };
export default config;
