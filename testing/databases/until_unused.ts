import { hostNow, hostSleep } from "../test_time.ts";

/**
 * Waits until nobody is connected any more: a server notices some time after a client has closed
 * its connections that they are gone.
 *
 * @param ask who is connected
 * @returns who still is after 2 s
 */
export async function untilUnused<T>(
  ask: () => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const end = hostNow() + MILLISECONDS_OF_GRACE;
  for (;;) {
    const connected = await ask();
    if (connected.length === 0 || hostNow() > end) return connected;
    await hostSleep(MILLISECONDS_BETWEEN);
  }
}

const MILLISECONDS_OF_GRACE = 2000;
const MILLISECONDS_BETWEEN = 10;
