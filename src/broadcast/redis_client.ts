import { MissingPackageError } from "../missing_package_error.ts";

/** What of a client of ioredis is used. */
export interface RedisClient {
  readonly status: string;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  publish(channel: string, text: string): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  ping(): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "message", listener: (channel: string, text: string) => void): unknown;
  on(event: "ready" | "close" | "end", listener: () => void): unknown;
}

/** What of the package ioredis is used. */
export interface RedisModule {
  readonly Redis: new (url: string, options: Readonly<Record<string, unknown>>) => RedisClient;
}

/** Loads `npm:ioredis`, which is loaded here and nowhere else. */
export async function loadIoredis(): Promise<RedisModule> {
  return await import("ioredis") as unknown as RedisModule;
}

/**
 * The package, as `load` gives it.
 *
 * @throws {MissingPackageError} if it does not load
 */
export async function loadRedis(load: () => Promise<RedisModule>): Promise<RedisModule> {
  try {
    return await load();
  } catch (cause) {
    throw new MissingPackageError("redis", "ioredis", { cause });
  }
}
