import type { App } from "./app.ts";

/**
 * The answer to a probe: `/livez` is 200 for as long as the app has not broken down, `/readyz` while it
 * runs and has not been asked to stop. `undefined` for any other request.
 */
export function healthResponse(request: Request, app: App): Response | undefined {
  const { pathname } = new URL(request.url);
  if (pathname === "/livez") return probe(app.isLive);
  if (pathname === "/readyz") return probe(app.isReady);
}

function probe(isWell: boolean): Response {
  return new Response(isWell ? "ok" : "unavailable", {
    status: isWell ? 200 : 503,
    headers: { "content-type": "text/plain", "cache-control": "no-store" },
  });
}
