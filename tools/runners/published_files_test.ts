import assert from "node:assert/strict";
import { publishedFiles } from "./published_files.ts";

Deno.test("the published files are those that deno publish takes", async () => {
  const root = new URL("../../", import.meta.url);
  const args = ["publish", "--dry-run", "--allow-dirty", "--no-check"];
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    cwd: root,
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  const files = [...text.matchAll(/file:\/\/\S+/g)]
    .filter(([url]) => url.startsWith(root.href))
    .map(([url]) => decodeURIComponent(url.slice(root.href.length)));
  assert.deepEqual([...new Set(files)].sort(), await publishedFiles(), text);
});
