/** Where tests keep what is expensive to make: `HOLDFAST_TEST_CACHE`, else the user's cache. */
export function cacheFolder(): string {
  const own = Deno.env.get("HOLDFAST_TEST_CACHE");
  if (own) return absolute(own);
  const caches = Deno.env.get("XDG_CACHE_HOME");
  if (caches) return `${absolute(caches)}/holdfast-test`;
  const home = Deno.env.get("HOME");
  return Deno.uid() === 0 || !home ? "/var/cache/holdfast-test" : `${home}/.cache/holdfast-test`;
}

function absolute(path: string): string {
  return path.startsWith("/") ? path : `${Deno.cwd()}/${path}`;
}
