import type { SqlValue } from "./driver.ts";
import type { Statement } from "./statement.ts";

/** A piece of SQL with its parameters, in the order of its placeholders. */
export type Sql<Values = unknown> = Statement<Values>;

/** What may stand in SQL: SQL as text, a piece with its parameters, or a parameter. */
export type SqlPart<Values> = string | Sql<Values> | ((values: Values) => SqlValue);

/** Writes SQL as a template: each parameter becomes a placeholder where it stands. */
export function sql<Values = unknown>(
  texts: TemplateStringsArray,
  ...parts: readonly SqlPart<Values>[]
): Sql<Values> {
  const pieces = parts.map(pieceOf);
  return {
    text: texts.map((text, index) => text + (pieces[index]?.text ?? "")).join(""),
    params: pieces.flatMap(({ params }) => params),
  };
}

/** Pieces of SQL as a list. */
export function join<Values>(pieces: readonly SqlPart<Values>[], separator: string): Sql<Values> {
  const all = pieces.map(pieceOf);
  return {
    text: all.map(({ text }) => text).join(separator),
    params: all.flatMap(({ params }) => params),
  };
}

/** Conditions as a WHERE clause; empty where there are none. */
export function where<Values>(conditions: readonly SqlPart<Values>[]): Sql<Values> {
  return conditions.length === 0 ? join([], "") : sql`WHERE ${join(conditions, " AND ")} `;
}

function pieceOf<Values>(part: SqlPart<Values>): Sql<Values> {
  if (typeof part === "string") return { text: part, params: [] };
  return typeof part === "function" ? { text: "?", params: [part] } : part;
}
