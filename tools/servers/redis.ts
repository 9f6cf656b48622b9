import { findBinary } from "./binary.ts";
import { MissingServerError } from "./missing_server_error.ts";
import { redisInfo } from "./redis_info.ts";
import type { StartOptions, TestServer } from "./server.ts";
import { throwawayFolder } from "./throwaway_folder.ts";
import { throwawayServer } from "./throwaway_server.ts";

const SETTINGS: Readonly<Record<string, string>> = {
  bind: "127.0.0.1",
  save: "",
  appendonly: "no",
  daemonize: "no",
};

/** Starts a Redis that keeps its data in memory only: a restart empties it. */
export async function startRedis(options: StartOptions = {}): Promise<TestServer> {
  const binary = await findBinary("redis-server");
  if (binary === undefined) {
    throw new MissingServerError(
      "Looking for redis-server found none: apt-get install redis-server",
    );
  }
  await using building = new AsyncDisposableStack();
  const folder = building.use(await throwawayFolder("redis")).path;
  const settings = { dir: folder, ...SETTINGS, ...options.settings };
  const set = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  return throwawayServer({
    name: "Redis",
    folder,
    resources: building.move(),
    stopSignals: { fast: "SIGTERM", immediate: "SIGKILL" },
    url: (port) => `redis://127.0.0.1:${port}`,
    launch: (port) => ({ command: [binary, "--port", `${port}`, ...set] }),
    probe: async (port, pid) => {
      const info = await redisInfo(port);
      return Number(info.get("process_id")) === pid ? info.get("redis_version") : undefined;
    },
    clean: async () => {},
  }, options.signal);
}
