import { PayloadError } from "./errors.ts";
import { type StandardSchema, validate } from "./standard_schema.ts";

/** A row of a table as it is handed to a handler or published, by column. */
export type Row = Readonly<Record<string, unknown>>;

/** The role `payload` of a table whose rows are the messages. Made by `row`. */
export interface RowMessage<in In, out Out = In> {
  /** Tells it from a payload that is kept in one column. */
  readonly kind: "row";
  /** The columns of a message to be published; throws where it has none. */
  encodeRow(message: In): Row | Promise<Row>;
  /** The message of a row; throws where it is not one. */
  decodeRow(row: Row): Out | Promise<Out>;
}

/**
 * The row itself is the message: the handler gets all its columns by name. Whole numbers are numbers
 * where those are exact, else `bigint`; times and decimals are the database's own text; `json` of
 * Postgres and MySQL is parsed, `boolean` of Postgres is a boolean. To publish, give the columns that
 * play no role. The type is taken on trust: give a schema where others write rows.
 */
export function row<Out = Row, In = Out>(): RowMessage<In, Out>;
/**
 * The row itself is the message, checked by a schema of any Standard Schema library: its *input* is
 * published, its *output* delivered.
 *
 * @param schema the schema; it may be asynchronous
 */
export function row<In, Out>(schema: StandardSchema<In, Out>): RowMessage<In, Out>;
export function row<In, Out>(schema?: StandardSchema<In, Out>): RowMessage<In, Out> {
  return {
    kind: "row",
    async encodeRow(message: In): Promise<Row> {
      if (schema !== undefined) await validate(schema, message);
      if (typeof message === "object" && message !== null && !Array.isArray(message)) {
        return message as Row;
      }
      throw new PayloadError(`${typeof message} is no row; give { column: value, … }`);
    },
    decodeRow(row: Row): Out | Promise<Out> {
      return schema === undefined ? row as Out : validate(schema, row);
    },
  };
}
