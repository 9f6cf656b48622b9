import assert from "node:assert/strict";
import type { NewRow } from "../driver/dialect.ts";
import { mysqlDialect } from "./dialect.ts";
import { firstRow, isDriverError } from "./server_for_test.ts";
import { CLOCKS, LEASE, tableTest } from "./table_for_test.ts";

const NOW = Date.parse("2026-01-31T10:00:00.250Z");
const ROW: NewRow = {
  id: undefined,
  payload: "{}",
  group: "q",
  headers: null,
  key: null,
  uniqueKey: null,
  priority: -3n,
  now: NOW,
  delay: 0,
  at: undefined,
  columns: {},
};

tableTest("a row is published with all its roles", {
  ...LEASE,
  alter: [
    "ALTER TABLE {table} ADD note TEXT, ADD bytes BLOB, ADD json JSON, ADD big BIGINT UNSIGNED",
  ],
}, async (on) => {
  const values = {
    note: "ü",
    bytes: new Uint8Array([0, 255]),
    json: '{"a": 1}',
    big: 2n ** 64n - 1n,
  };
  const { insert, readId } = mysqlDialect.publish(on.table, on.facts, {
    clock: "given",
    columns: Object.keys(values),
  });
  const { rows } = await on.run(insert, { ...ROW, delay: 5000, columns: values });
  assert.deepEqual(rows.map(readId), [1n]);
  assert.deepEqual(await firstRow(on.session, `SELECT * FROM ${on.name}`), {
    id: 1n,
    payload: "{}",
    attempt: 1,
    queue: "q",
    priority: -3,
    retry_after: "2026-01-31 10:00:05.250",
    locked_until: null,
    processed_at: null,
    ...values,
  });
});

for (const type of ["DATETIME", "DATETIME(3)", "TIMESTAMP(6)", "BIGINT"]) {
  tableTest(
    `a message is due at once, after a delay or at a time: ${type}`,
    { ...LEASE, alter: [`ALTER TABLE {table} MODIFY retry_after ${type} NULL`] },
    async (on) => {
      for (const clock of CLOCKS) {
        const { insert } = mysqlDialect.publish(on.table, on.facts, { clock, columns: [] });
        const now = clock === "given" ? NOW : Date.now();
        const use = { clock: "given", group: "q" } as const;
        const { claim } = mysqlDialect.lease(on.table, on.facts, use);
        assert(claim.kind === "find, then take");
        const [always, due] = claim.find.each;
        const found = async (when: number) => {
          const values = { now: when, limit: 10, priority: -3n };
          assert.deepEqual((await on.run(always!, values)).rows, [], "it has a due time");
          return (await on.run(due!, values)).rows.length;
        };
        // Hours, so that it does not matter by how much the clocks of server and host differ.
        const hour = 3_600_000;
        for (
          const [more, before, after] of [
            [{}, now - hour, clock === "given" ? now : now + hour],
            [{ delay: 2 * hour }, now + hour, now + 3 * hour],
            [{ at: now + 2 * hour, delay: 0 }, now + 2 * hour - 1, now + 2 * hour + 1000],
          ] as const
        ) {
          await on.run(insert, { ...ROW, ...more });
          assert.equal(await found(before), 0);
          assert.equal(await found(after), 1);
          await on.sql("DELETE FROM {table}");
        }
      }
    },
  );
}

tableTest(
  "a service's id is written, and columns that are not there are refused",
  { form: "row lock", id: { column: "id", generatedBy: "service" } },
  async (on) => {
    const publish = (columns: readonly string[]) =>
      mysqlDialect.publish(on.table, on.facts, { clock: "given", columns }).insert;
    await on.run(publish([]), { ...ROW, id: "a" });
    assert.deepEqual((await on.sql("SELECT * FROM {table}")).rows, [{ id: "a", payload: "{}" }]);
    const other = { ...ROW, id: "b", columns: { "no`such": 1 } };
    await assert.rejects(on.run(publish(["no`such"]), other), isDriverError("missing"));
  },
);
