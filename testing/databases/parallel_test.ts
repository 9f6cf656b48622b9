import assert from "node:assert/strict";
import { onEachDatabase } from "./databases_for_test.ts";

const FILES = 8;
const ROOT = new URL("../../", import.meta.url);

onEachDatabase("eight test files in parallel, and nothing is left", async (on) => {
  const folder = await Deno.makeTempDir();
  try {
    const files = Array.from({ length: FILES }, (_, index) => `${folder}/number_${index}_test.ts`);
    for (const file of files) await Deno.writeTextFile(file, program(on.title, on.url));
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        "test",
        "-A",
        "--no-check",
        "--parallel",
        `--config=${ROOT.pathname}deno.json`,
        ...files,
      ],
      env: { DENO_JOBS: String(FILES), NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const { code, stdout, stderr } = await child.output();
    const printed = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    assert.equal(code, 0, printed);
    assert.match(printed, new RegExp(`ok \\| ${FILES * 3} passed`));
    assert.deepEqual((await on.names()).filter((name) => name.includes(`_${child.pid}_`)), []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** Three tests that would see each other's rows, and those of the other files. */
function program(title: string, url: string): string {
  const folder = title === "SQLite" || title === "Postgres" ? title.toLowerCase() : "mysql";
  return `
import assert from "node:assert/strict";
import { ${folder} as connect } from "${ROOT}src/${folder}/mod.ts";
import { TestDatabases } from "${ROOT}testing/mod.ts";

const databases = new TestDatabases({
  url: ${JSON.stringify(url)},
  connect: (url) => connect(url),
  prepare: (driver) => run(driver, "CREATE TABLE numbers (n INTEGER PRIMARY KEY)"),
});

for (const name of ["one", "two", "three"]) {
  Deno.test(name, async () => {
    await using database = await databases.create();
    const driver = database.connect();
    await driver.open();
    await run(driver, "INSERT INTO numbers VALUES (1)");
    assert.equal((await run(driver, "SELECT n FROM numbers")).length, 1);
    await driver.close();
  });
}

Deno.test.afterAll(() => databases.close());

async function run(driver, text) {
  const session = await driver.session();
  const { rows } = await session.query(text);
  await session.release();
  return rows;
}
`;
}
