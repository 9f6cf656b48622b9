import type { Columns } from "./columns.ts";
import type { TimeRole } from "../driver/roles.ts";

/** A time in milliseconds since 1970 as a parameter that a role's column can be compared with. */
export function encodeTime(columns: Columns, role: TimeRole, time: number): bigint | string {
  const whole = Math.floor(time);
  if (columns.countsMilliseconds(role)) return BigInt(whole);
  return new Date(whole).toISOString().slice(0, -1).replace("T", " ");
}

/** The first time that a role's column can hold which is not before this one. */
export function roundUp(columns: Columns, role: TimeRole, time: number): number {
  const unit = unitOf(columns, role);
  return Math.ceil(time / unit) * unit;
}

/** The last time that a role's column can hold which is not after this one. */
export function roundDown(columns: Columns, role: TimeRole, time: number): number {
  const unit = unitOf(columns, role);
  return Math.floor(time / unit) * unit;
}

/** Of the column or of what crosses, in milliseconds. */
function unitOf(columns: Columns, role: TimeRole): number {
  return Math.max(1, 10 ** (3 - columns.fraction(role)));
}
