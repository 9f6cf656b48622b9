import type { DeadLetterUse, TableDescription, TableFacts } from "./dialect.ts";
import { columnNames, type Role } from "./roles.ts";

/** A column of the dead letter's table, and where its value comes from. */
export interface BurialColumn {
  /** The column, of the other table. */
  readonly column: string;
  /** The role that it plays there. */
  readonly role: Role | undefined;
  /** The column of the row that is moved, or the role whose value the move itself makes. */
  readonly from: { readonly column: string } | {
    readonly role: "id" | "attempt" | "retryAfter" | "group" | "lastError";
  };
}

/**
 * The columns that a row gets in another table. Roles of the queue begin anew; all else is copied by
 * the name of its column or, for a role whose column has another name there, by the role.
 */
export function burialColumns(
  source: TableDescription,
  sourceFacts: TableFacts,
  { table: target, facts: targetFacts }: Required<Pick<DeadLetterUse, "table" | "facts">>,
): readonly BurialColumn[] {
  const names = columnNames(target);
  const roleOf = new Map(
    Object.entries(names).flatMap(([role, name]) =>
      name === undefined ? [] : [[name.toLowerCase(), role]]
    ),
  ) as ReadonlyMap<string, Role>;
  const all = targetFacts.all ?? targetFacts.columns;
  return [...all.keys()].flatMap((column): readonly BurialColumn[] => {
    const role = roleOf.get(column.toLowerCase());
    switch (role) {
      case "id":
        return target.id.generatedBy === "service" ? [{ column, role, from: { role } }] : [];
      case "attempt":
      case "retryAfter":
      case "group":
      case "lastError":
        return [{ column, role, from: { role } }];
      case "lockedUntil":
      case "processedAt":
        return [];
    }
    const from = sameName(sourceFacts, column) ??
      (role === undefined ? undefined : columnNames(source)[role]);
    return from === undefined ? [] : [{ column, role, from: { column: from } }];
  });
}

/** The columns of the other table that a row would have to have, and that nothing gives it. */
export function missingInBurial(
  source: TableDescription,
  sourceFacts: TableFacts,
  target: Required<Pick<DeadLetterUse, "table" | "facts">>,
): readonly string[] {
  const given = new Set(burialColumns(source, sourceFacts, target).map(({ column }) => column));
  return [...target.facts.demanded ?? []].filter((column) => !given.has(column));
}

function sameName({ all, columns }: TableFacts, column: string): string | undefined {
  return [...(all ?? columns).keys()].find((name) => name.toLowerCase() === column.toLowerCase());
}
