import assert from "node:assert/strict";
import { DriverError, type DriverErrorKind } from "../errors.ts";
import { classify } from "./classify.ts";
import { failure } from "./failure.ts";

const CODES: Readonly<Record<DriverErrorKind, readonly string[]>> = {
  conflict: ["40001", "40P01", "55P03"],
  disconnected: [
    ...["57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "08006", "08003", "53300"],
    ...["CONNECTION_CLOSED", "CONNECTION_ENDED", "CONNECTION_DESTROYED", "CONNECT_TIMEOUT"],
    ...["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EHOSTUNREACH"],
  ],
  "read-only": ["25006"],
  constraint: ["23505", "23502", "23514"],
  missing: ["42P01", "42703", "3F000"],
  unusable: ["28P01", "28000", "3D000"],
  other: ["57014", "42601", "22P02", "25P02", "UNDEFINED_VALUE", ""],
};

Deno.test("errors are told apart by their codes", () => {
  for (const [kind, codes] of Object.entries(CODES)) {
    for (const code of codes) {
      assert.equal(classify(Object.assign(new Error("Boom"), { code })), kind, code);
    }
  }
  assert.equal(classify(new DriverError("missing", "Boom")), "missing");
  for (const strange of [undefined, null, "boom", 5, new Error("Boom")]) {
    assert.equal(classify(strange), "other");
  }
});

Deno.test("what PgBouncer says is told from a protocol violation", () => {
  const violation = (severity: string, message: string) =>
    classify(Object.assign(new Error(message), { code: "08P01", severity }));
  assert.equal(violation("FATAL", "unsupported startup parameter: statement_timeout"), "unusable");
  assert.equal(violation("FATAL", "server conn crashed?"), "disconnected");
  assert.equal(violation("ERROR", "bind message supplies 1 parameters"), "other");
});

Deno.test("a message says what was attempted, what the server said, and the fix", () => {
  const refused = Object.assign(new Error('null value in column "a"'), { code: "23502" });
  const { kind, message, cause } = failure(refused, "run INSERT");
  assert.equal(kind, "constraint");
  assert.equal(
    message,
    'Cannot run INSERT: null value in column "a" (23502); mend the row, or the constraint',
  );
  assert.equal(cause, refused);
});
