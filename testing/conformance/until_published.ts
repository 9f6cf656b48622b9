import { sleep } from "./sleep.ts";

/** Repeats a publish until it succeeds: after a cut that is the caller's to do. */
export async function untilPublished(publish: () => Promise<unknown>): Promise<void> {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      await publish();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(100);
    }
  }
}
