import { inRealTime, sleep } from "./clock.ts";

/** Whether work that nobody waits for any more is done all the same, but for a moment of real time. */
export async function atOnce(work: Promise<unknown>): Promise<boolean> {
  let done = false;
  work.then(() => done = true, () => {});
  await inRealTime(() => sleep(MOMENT));
  return done;
}

/** Whether the work has ended by then, or before anybody is in a hurry. */
export async function within(
  ms: number,
  work: Promise<unknown>,
  hurry?: AbortSignal,
): Promise<boolean> {
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, ...(hurry === undefined ? [] : [hurry])]);
  let done = false;
  const end = work.then(() => {
    done = true;
    ended.abort();
  });
  await Promise.race([end, sleep(ms, signal)]);
  return done;
}

/** What is given to work for which there is no time left, in milliseconds. */
export const MOMENT = 10;
