import { mysql } from "../../src/mysql/mod.ts";
import { postgres } from "../../src/postgres/mod.ts";
import { sqlite } from "../../src/sqlite/mod.ts";
import type { Driver } from "./holdfast.ts";

/** A driver for an address of a test database: its kind, a colon, and its path or URL. */
export function connectTo(
  address: string,
  options: { readonly connections?: number } = {},
): Driver {
  const colon = address.indexOf(":");
  const [kind, place] = [address.slice(0, colon), address.slice(colon + 1)];
  if (kind === "sqlite") return sqlite(place);
  if (kind === "postgres") return postgres(place, options);
  if (kind === "mysql") return mysql(place, options);
  throw new TypeError(`Cannot connect to ${address}: give sqlite:…, postgres:… or mysql:…`);
}
