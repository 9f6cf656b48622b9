import type { Payload, Stored } from "./payload.ts";
import { type StandardSchema, validate } from "./standard_schema.ts";
import { storedText } from "./stored.ts";
import { toJson } from "./to_json.ts";

/**
 * A payload kept as JSON text. The type is taken on trust: give a schema where others write rows.
 *
 * @param column the column that holds it
 */
export function json<T>(column: string): Payload<T>;
/**
 * A payload kept as JSON text and checked by a schema of any Standard Schema library.
 *
 * The schema's *input* is published: it is validated, and stored as it is. Its *output* is
 * delivered: a stored message is validated again, so transforms and defaults run once.
 *
 * @param column the column that holds it
 * @param schema the schema; it may be asynchronous
 */
export function json<In, Out>(column: string, schema: StandardSchema<In, Out>): Payload<In, Out>;
export function json<In, Out>(
  column: string,
  schema?: StandardSchema<In, Out>,
): Payload<In, Out> {
  if (schema === undefined) {
    return {
      column,
      storage: "text",
      encode: toJson,
      decode: (stored: Stored): Out => JSON.parse(storedText(stored)),
    };
  }
  return {
    column,
    storage: "text",
    async encode(message: In): Promise<string> {
      await validate(schema, message);
      return toJson(message);
    },
    decode: (stored: Stored): Promise<Out> => validate(schema, JSON.parse(storedText(stored))),
  };
}
