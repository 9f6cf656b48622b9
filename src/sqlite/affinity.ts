/** How SQLite stores what is written to a column (sqlite.org/datatype3.html, section 3.1). */
export type Affinity = "INTEGER" | "TEXT" | "BLOB" | "REAL" | "NUMERIC";

/** The affinity that a declared type gives a column. */
export function affinityOf(declaredType: string): Affinity {
  const type = declaredType.toUpperCase();
  if (type.includes("INT")) return "INTEGER";
  if (/CHAR|CLOB|TEXT/.test(type)) return "TEXT";
  if (type === "" || type.includes("BLOB")) return "BLOB";
  if (/REAL|FLOA|DOUB/.test(type)) return "REAL";
  return "NUMERIC";
}

/** How a time is kept in a column: ISO 8601 text, or milliseconds since 1970. */
export type TimeStorage = "text" | "milliseconds";

/** How a column of this declared type keeps times; `undefined` if it cannot. */
export function timeStorageOf(declaredType: string): TimeStorage | undefined {
  const affinity = affinityOf(declaredType);
  if (affinity === "INTEGER") return "milliseconds";
  if (affinity === "TEXT") return "text";
  // DATETIME and TIMESTAMP have NUMERIC affinity, which leaves ISO text as it is.
  return affinity === "NUMERIC" && /DATE|TIME/i.test(declaredType) ? "text" : undefined;
}
