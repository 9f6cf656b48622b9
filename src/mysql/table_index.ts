/** An index of a table, as far as ranges in ascending order can be read by it. */
export interface TableIndex {
  /** Its name. */
  readonly name: string;
  /** Whether no two rows are equal in its own columns. */
  readonly unique: boolean;
  /** How many columns it was declared with. */
  readonly size: number;
  /** Its columns in order, up to the first that is of no use; then those of the primary key. */
  readonly columns: readonly string[];
}

/** Lists the parts of a table's usable indexes as JSON text; `c` is any of its columns. */
export const INDEXES_SQL: string = `(
  SELECT CAST(JSON_ARRAYAGG(JSON_OBJECT(
    'name', s.INDEX_NAME, 'at', s.SEQ_IN_INDEX, 'column', s.COLUMN_NAME,
    'unique', s.NON_UNIQUE = 0, 'usable', s.SUB_PART IS NULL AND COALESCE(s.COLLATION, 'A') = 'A'
  )) AS CHAR) FROM information_schema.STATISTICS AS s
  WHERE s.TABLE_SCHEMA = c.TABLE_SCHEMA AND s.TABLE_NAME = c.TABLE_NAME AND s.INDEX_TYPE IN ('BTREE', 'HASH')
    /*!80000 AND s.IS_VISIBLE = 'YES' */ /*M!100600 AND s.IGNORED = 'NO' */
)`;

interface Part {
  readonly name: string;
  readonly at: number;
  /** NULL where the index is of an expression. */
  readonly column: string | null;
  readonly unique: boolean | number;
  readonly usable: boolean | number;
}

/** Reads what {@link INDEXES_SQL} has returned. */
export function readIndexes(text: string): readonly TableIndex[] {
  const parts = (JSON.parse(text) as readonly Part[]).toSorted((a, b) => a.at - b.at);
  const named = Map.groupBy(parts, ({ name }) => name);
  const primary = usable(named.get(PRIMARY) ?? []);
  return [...named].map(([name, parts]) => {
    const columns = usable(parts);
    const isWhole = columns.length === parts.length && name !== PRIMARY;
    const rest = isWhole ? primary.filter((column) => !columns.includes(column)) : [];
    return {
      name,
      unique: Boolean(Number(parts[0]!.unique)),
      size: parts.length,
      columns: [...columns, ...rest],
    };
  });
}

function usable(parts: readonly Part[]): readonly string[] {
  const end = parts.findIndex(({ column, usable }) => column === null || !Number(usable));
  return parts.slice(0, end < 0 ? parts.length : end).map(({ column }) => column!);
}

const PRIMARY = "PRIMARY";
