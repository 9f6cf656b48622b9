import assert from "node:assert/strict";

Deno.test("the demo kills a worker in the middle of a report, and loses none", async () => {
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", new URL("./demo.ts", import.meta.url).href],
    stdin: "null",
    stderr: "inherit",
  }).output();
  const text = new TextDecoder().decode(stdout);
  assert.equal(code, 0, text);
  assert.match(text, /^published 12, rendered 12, crashed 1, redelivered 1, lost 0$/m);
  assert.match(text, /report {2}4 {2}attempt 1 {2}killed while it renders page 3\n/);
  assert.match(text, /report {2}4 {2}attempt 2 {2}started again\n/);
  assert.match(text, /stopped gracefully\n/);
});
