/** A length of time by unit. A `Temporal.Duration` without years, months and weeks fits. */
export interface DurationLike {
  /** Days of 24 hours. */
  readonly days?: number;
  /** Hours. */
  readonly hours?: number;
  /** Minutes. */
  readonly minutes?: number;
  /** Seconds. */
  readonly seconds?: number;
  /** Milliseconds. */
  readonly milliseconds?: number;
}

/** A length of time: milliseconds, or an object of units that are added up. */
export type Duration = number | DurationLike;

/**
 * The milliseconds of a duration.
 *
 * @param name what the duration is for, as it stands in the error
 * @throws {TypeError} if it is not a duration, or has a unit that is not of fixed length
 * @throws {RangeError} if it is negative or not finite
 */
export function toMilliseconds(duration: Duration, name: string): number {
  const total = typeof duration === "number" ? duration : sumOfUnits(duration, name);
  if (!Number.isFinite(total) || total < 0) {
    throw new RangeError(`Cannot use ${total} ms as ${name}: give a finite length of 0 or more`);
  }
  return total;
}

function sumOfUnits(duration: DurationLike, name: string): number {
  if (typeof duration !== "object" || duration === null) {
    throw new TypeError(
      `Cannot use ${
        String(duration)
      } as ${name}: give milliseconds or an object such as { minutes: 5 }`,
    );
  }
  refuseOtherUnits(duration, name);
  let total = 0;
  for (const [unit, length] of UNITS) {
    const count = duration[unit] ?? 0;
    if (typeof count !== "number") {
      throw new TypeError(`Cannot use ${typeof count} as ${unit} of ${name}: give a number`);
    }
    total += count * length;
  }
  return total;
}

/** Reads the longer units by name: on a `Temporal.Duration` they are getters, not own keys. */
function refuseOtherUnits(duration: DurationLike, name: string): void {
  const values = duration as Readonly<Record<string, unknown>>;
  const known: ReadonlySet<string> = new Set(UNITS.map(([unit]) => unit));
  const foreign = [...LONGER_UNITS, ...SHORTER_UNITS].filter((unit) => Boolean(values[unit]));
  const other = foreign[0] ?? Object.keys(duration).find((key) => !known.has(key) && values[key]);
  if (other === undefined) return;
  throw new TypeError(
    `Cannot use the unit "${other}" in ${name}: give ${[...known].join(", ")} (a day is 24 hours)`,
  );
}

const UNITS = [
  ["days", 86_400_000],
  ["hours", 3_600_000],
  ["minutes", 60_000],
  ["seconds", 1_000],
  ["milliseconds", 1],
] as const;
const LONGER_UNITS = ["years", "months", "weeks"] as const;
const SHORTER_UNITS = ["microseconds", "nanoseconds"] as const;
