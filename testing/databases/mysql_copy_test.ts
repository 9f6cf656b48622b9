import assert from "node:assert/strict";
import { onEachServer, run, runOpen } from "./databases_for_test.ts";
import { TestDatabases } from "./test_databases.ts";

const MYSQL = ["MySQL", "MariaDB"];

onEachServer("a copy has the tables, their keys and their rows", async ({ url, connect }) => {
  await using databases = new TestDatabases({
    url,
    connect,
    prepare: async (driver) => {
      await runOpen(
        driver,
        "ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        // The child comes first by name, and one name has to be quoted.
        "CREATE TABLE `the ``parents``` (id INT PRIMARY KEY AUTO_INCREMENT, n INT, " +
          "twice INT AS (n * 2) STORED, UNIQUE (n))",
        "CREATE TABLE children (id INT PRIMARY KEY AUTO_INCREMENT, parent INT NOT NULL, " +
          "CONSTRAINT of_parent FOREIGN KEY (parent) REFERENCES `the ``parents``` (id))",
        "INSERT INTO `the ``parents``` (id, n) VALUES (7, 21)",
        "INSERT INTO children (parent) VALUES (7)",
        "UPDATE children SET id = 0",
      );
    },
  });
  await using database = await databases.create();
  const driver = database.connect();
  await driver.open();
  try {
    assert.deepEqual(await runOpen(driver, "SELECT * FROM `the ``parents```"), [
      { id: 7, n: 21, twice: 42 },
    ]);
    assert.deepEqual(await runOpen(driver, "SELECT * FROM children"), [{ id: 0, parent: 7 }]);
    assert.deepEqual(await runOpen(driver, "SELECT @@collation_database AS c"), [
      { c: "utf8mb4_bin" },
    ]);
    await assert.rejects(runOpen(driver, "INSERT INTO children (parent) VALUES (8)"), /of_parent/);
    await assert.rejects(runOpen(driver, "DELETE FROM `the ``parents```"), /of_parent/);
    await runOpen(driver, "INSERT INTO `the ``parents``` (n) VALUES (22)");
    assert.deepEqual(await runOpen(driver, "SELECT max(id) AS id FROM `the ``parents```"), [
      { id: 8 },
    ]);
    await assert.rejects(runOpen(driver, "INSERT INTO `the ``parents``` (n) VALUES (21)"), /1062/);
  } finally {
    await driver.close();
  }
}, MYSQL);

for (
  const [what, statement] of [
    ["a view", "CREATE VIEW more AS SELECT n FROM numbers"],
    ["a trigger", "CREATE TRIGGER more BEFORE INSERT ON numbers FOR EACH ROW SET NEW.n = 1"],
    ["a procedure", "CREATE PROCEDURE more() SELECT 1"],
    ["an event", "CREATE EVENT more ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM numbers"],
  ] as const
) {
  onEachServer(`where prepare makes ${what}, it runs for every database`, async (on) => {
    const { url, connect } = on;
    let runs = 0;
    await using databases = new TestDatabases({
      url,
      connect,
      prepare: async (driver) => {
        runs++;
        await runOpen(driver, "CREATE TABLE numbers (n INT)", statement);
      },
    });
    await using one = await databases.create();
    await using other = await databases.create();
    assert.equal(runs, 3); // once to see what it makes
    for (const database of [one, other]) {
      await assert.rejects(run(database.connect(), statement), /exists/);
    }
    const made = (await on.names()).filter((name) => name.includes(`_${Deno.pid}_`));
    assert.deepEqual(made.sort(), [one.name, other.name].sort());
  }, MYSQL);
}
