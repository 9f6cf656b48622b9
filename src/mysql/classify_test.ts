import assert from "node:assert/strict";
import { DriverError, type DriverErrorKind } from "../errors.ts";
import { classify } from "./classify.ts";
import { failure } from "./failure.ts";
import { readServer, tooOld } from "./settings.ts";

const ERRORS: Readonly<Record<DriverErrorKind, readonly (number | string)[]>> = {
  conflict: [1213, 1205, 3572, 1020, 1615, 3058],
  disconnected: [
    ...[1053, 1927, 2006, 2013, 4031, 1040],
    ...["PROTOCOL_CONNECTION_LOST", "ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT"],
  ],
  "read-only": [1290, 1836, 1792],
  constraint: [1062, 1048, 1452, 1406, 1264, 1292, 3819, 4025],
  missing: [1146, 1054],
  unusable: [1049, 1045, 1044, "HANDSHAKE_NO_SSL_SUPPORT"],
  other: [1064, 3024, ""],
};

Deno.test("errors are told apart by their numbers and codes", () => {
  for (const [kind, errors] of Object.entries(ERRORS)) {
    for (const error of errors) {
      const fields = typeof error === "number" ? { errno: error, code: "ER_X" } : { code: error };
      assert.equal(classify(Object.assign(new Error("Boom"), fields)), kind, String(error));
    }
  }
  // The number of a system's error is no number of a server's.
  const refused = Object.assign(new Error("Boom"), { errno: -111, code: "ECONNREFUSED" });
  assert.equal(classify(refused), "disconnected");
  assert.equal(classify(new DriverError("missing", "Boom")), "missing");
  for (const strange of [undefined, null, "boom", 5, new Error("Boom")]) {
    assert.equal(classify(strange), "other");
  }
});

Deno.test("what the client says without a code is told apart too", () => {
  const closed = new Error("Can't add new command when connection is in closed state");
  assert.equal(classify(closed), "disconnected");
  assert.equal(classify(new Error("Pool is closed.")), "disconnected");
  assert.equal(classify(new Error("Queue limit reached.")), "conflict");
});

Deno.test("a message says what was attempted, what the server said, and the fix", () => {
  const refused = Object.assign(new Error("Column 'a' cannot be null"), { errno: 1048 });
  const { kind, message, cause } = failure(refused, "run INSERT");
  assert.equal(kind, "constraint");
  assert.equal(
    message,
    "Cannot run INSERT: Column 'a' cannot be null (1048); mend the row, or the constraint",
  );
  assert.equal(cause, refused);
});

Deno.test("servers that are too old are named", () => {
  const reason = (mariadb: number, version: string) => tooOld(readServer({ mariadb, version }));
  for (const version of ["8.0.1", "8.0.34-cluster", "8.4.0", "9.7.4-2"]) {
    assert.equal(reason(0, version), undefined, version);
  }
  for (const version of ["10.6.0-MariaDB", "10.11.19-MariaDB-0+deb12u1", "11.8.2-MariaDB"]) {
    assert.equal(reason(1, version), undefined, version);
  }
  assert.equal(
    reason(0, "8.0.0-dmr"),
    "the server is MySQL 8.0.0-dmr; Holdfast needs 8.0.1 or later",
  );
  assert.match(reason(0, "5.7.44")!, /MySQL 5\.7\.44/);
  assert.match(reason(1, "10.5.28-MariaDB")!, /Holdfast needs 10\.6 or later/);
});
