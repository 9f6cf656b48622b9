import { describeValue } from "./describe_value.ts";

/**
 * What was thrown, as an error that can be logged, printed and asked for its message, whatever it
 * was: JavaScript lets anything be thrown, and objects be anything.
 */
export function asError(thrown: unknown, where: string): Error {
  try {
    if (thrown instanceof Error && String(thrown) !== "" && typeof thrown.message === "string") {
      return thrown;
    }
    return new Error(`${where} threw ${describe(thrown)}; throw an Error`, { cause: thrown });
  } catch {
    return new Error(`${where} threw something that cannot be described; throw an Error`);
  }
}

function describe(thrown: unknown): string {
  if (typeof thrown === "string") return JSON.stringify(thrown);
  const text = String(thrown);
  return text === String({}) ? describeValue(thrown) : text;
}
