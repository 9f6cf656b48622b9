/** Below the ports that the system hands to outgoing connections, so that a restart finds its own. */
const FIRST = 20_000;
const COUNT = 10_000;
const ATTEMPTS = 100;

/** A port of the loopback address where nothing listens right now. */
export function freePort(): number {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (isFree(port)) return port;
  }
  throw new Error(
    `Looking for a free port from ${FIRST} to ${FIRST + COUNT - 1} failed ${ATTEMPTS} times: ` +
      "end servers that were left behind",
  );
}

function isFree(port: number): boolean {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
    return true;
  } catch {
    return false;
  }
}
