/** A database server that a test starts, and that is gone with all its data once disposed. */
export interface TestServer extends AsyncDisposable {
  /** Where it listens: the same before and after {@linkcode restart}. */
  readonly url: string;
  /** As the server itself tells it. */
  readonly version: string;
  /** Its process, for tests that halt it (`SIGSTOP`) or send it something else. */
  readonly pid: number;
  /** Its temporary folder, with its data and its log. */
  readonly folder: string;
  /** Ends every process of the server at once (`SIGKILL`), as a crash of the machine would. */
  kill(): Promise<void>;
  /** Ends it: `fast` (default) in good order with clients cut off, `immediate` without cleaning up. */
  stop(mode?: StopMode): Promise<void>;
  /** Starts it again with the same data on the same port; one that runs is stopped before. */
  restart(): Promise<void>;
}

/** How a server is stopped. */
export type StopMode = "fast" | "immediate";

/** What every kind of server takes. */
export interface StartOptions {
  /** Settings of the server by name, over those that tests run with. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Gives up the start and leaves nothing behind. */
  readonly signal?: AbortSignal;
}
