import type { DatabaseName } from "./ddl_text.ts";
import { DeclarationError } from "./errors.ts";
import { refuseUnknownOptions } from "./refuse_unknown_options.ts";

/** A table in which schedules remember the last slot that was published. Made by `scheduleTable`. */
export interface ScheduleTable {
  /** The table, `"table"` or `"schema.table"`. */
  readonly table: string;
  /** The column of a schedule's name, which is unique. */
  readonly name: string;
  /** The column of its last slot, an integer of 64 bits: milliseconds since 1970. */
  readonly lastSlot: string;
  /** The statement that creates it, as text for a migration. */
  ddl(database: DatabaseName): string;
}

/**
 * Describes a table in which schedules remember the last slot that was published, so that of several
 * processes one publishes it, and a slot is not published again after its message is gone.
 *
 * @param table `"table"` or `"schema.table"`; letters, digits and `_`
 * @param columns the names of its columns; `name` and `last_slot` unless given
 * @throws {DeclarationError} if a name has other characters
 */
export function scheduleTable(
  table: string,
  columns: { readonly name?: string; readonly lastSlot?: string } = {},
): ScheduleTable {
  refuseUnknownOptions(`Cannot describe the schedule table "${table}"`, columns, [
    "name",
    "lastSlot",
  ]);
  const { name = "name", lastSlot = "last_slot" } = columns;
  for (const each of [...String(table).split("."), name, lastSlot]) {
    if (typeof each === "string" && /^[A-Za-z_]\w*$/.test(each)) continue;
    throw new DeclarationError(
      `Cannot describe the schedule table "${table}": ${
        JSON.stringify(each)
      } is not a plain name; ` +
        `give letters, digits and _`,
    );
  }
  return {
    table,
    name,
    lastSlot,
    ddl: (database) => {
      const text = database === "mysql" || database === "mariadb"
        ? "VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        : "TEXT";
      return `CREATE TABLE ${table} (\n  ${name} ${text} NOT NULL PRIMARY KEY,\n` +
        `  ${lastSlot} BIGINT NOT NULL\n);\n`;
    },
  };
}
