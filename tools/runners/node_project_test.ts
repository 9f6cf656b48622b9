import assert from "node:assert/strict";
import { type NodeProject, nodeProject } from "./node_project.ts";

/** The servers on which one test more runs. */
const SERVERS = ["HOLDFAST_TEST_POSTGRES", "HOLDFAST_TEST_MARIADB"]
  .filter((variable) => Deno.env.get(variable)).length;

Deno.test("on Node, TestApp passes its tests by node --test and by Vitest", async () => {
  await using project = await nodeProject();
  await checkNodeTest(project);
  await checkVitest(project);
});

async function checkNodeTest(project: NodeProject): Promise<void> {
  const files = ["describe_it_test.ts", "node_runner.ts"];
  const { success, text } = await project.run("--test", "--test-reporter=tap", ...files);
  assert.ok(success, text);
  const count = (what: string): number =>
    Number(new RegExp(`^# ${what} (\\d+)$`, "m").exec(text)?.[1]);
  assert.equal(count("pass"), count("tests"), text);
  assertAtLeast(count("pass"), 9 + SERVERS, text);
}

async function checkVitest(project: NodeProject): Promise<void> {
  const vitest = "node_modules/vitest/vitest.mjs";
  const result = `${project.folder}/vitest.json`;
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile=${result}`];
  const { success, text } = await project.run(vitest, "run", ...reporters);
  assert.ok(success, text);
  const { numPassedTests, numTotalTests } = JSON.parse(await Deno.readTextFile(result));
  assert.equal(numPassedTests, numTotalTests, text);
  assertAtLeast(numPassedTests, 12 + SERVERS, text);
}

function assertAtLeast(passed: number, wanted: number, text: string): void {
  assert.ok(passed >= wanted, `${passed} tests passed, not ${wanted}:\n${text}`);
}
