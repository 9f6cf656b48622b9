import { inRealTime } from "./clock.ts";

/** Finds the slots of a cron pattern. Times are in milliseconds since 1970. */
export interface Slots {
  /** The first slot after a time; `undefined` if there is none. */
  after(time: number): number | undefined;
  /** The last slot that is after one time and not after another; `undefined` if there is none. */
  lastBetween(after: number, until: number): number | undefined;
}

/**
 * The slots of a cron pattern, by [croner](https://croner.56k.guru), which is loaded here.
 *
 * @throws {TypeError} if the pattern or the time zone is none
 */
export async function slotsOf(pattern: string, timeZone: string | undefined): Promise<Slots> {
  // On Deno an import hands the context that it is called in on to whatever runs next.
  const { Cron } = await inRealTime(() => import("croner"));
  const cron = parse(() => {
    const made = new Cron(pattern, { timezone: timeZone ?? "UTC", paused: true });
    // A time zone that does not exist shows only when it is used.
    made.nextRun(new Date(0));
    return made;
  });
  const after = (time: number): number | undefined =>
    cron.nextRun(new Date(time))?.getTime() ?? undefined;
  return {
    after,
    lastBetween(from, until) {
      const [latest] = cron.previousRuns(1, new Date(until + 1));
      const time = latest?.getTime();
      return time !== undefined && time > from && time <= until ? time : undefined;
    },
  };

  function parse<T>(make: () => T): T {
    try {
      return make();
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new TypeError(
        `Cannot schedule by ${JSON.stringify(pattern)} in the time zone ` +
          `${JSON.stringify(timeZone ?? "UTC")}: ${reason}`,
        { cause },
      );
    }
  }
}
