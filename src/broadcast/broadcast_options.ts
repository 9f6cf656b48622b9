import type { Channel } from "../channel.ts";
import { describeValue } from "../describe_value.ts";
import { type Duration, toMilliseconds } from "../duration.ts";
import { DeclarationError } from "../errors.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";

/** What a broadcast sends through, and how hard it tries. */
export interface BroadcastOptions {
  /** Through which it sends and receives, each by itself: `[inProcess(), redis(url)]`. */
  readonly channels: readonly Channel[];
  /** How many messages may wait for each channel; default 2,000. */
  readonly queue?: number;
  /** How often sending is tried again; default 2. */
  readonly retries?: number;
  /** How long it waits before it tries again; default 20 ms. */
  readonly retryPause?: Duration;
  /** What it is called in logs and in the app; default `"broadcast"`. */
  readonly name?: string;
}

/** How hard a channel is tried. */
export interface SendRules {
  readonly queue: number;
  readonly retries: number;
  /** In milliseconds. */
  readonly retryPause: number;
}

/** What a broadcast is made from. */
export interface BroadcastPlan {
  readonly name: string;
  readonly channels: readonly Channel[];
  readonly rules: SendRules;
}

/**
 * The options with their defaults.
 *
 * @throws {DeclarationError} if there is no channel, one is given twice, or an option is unknown
 * @throws {TypeError} if the pause is no duration
 * @throws {RangeError} if a number is no whole number, or too small
 */
export function readBroadcastOptions(options: BroadcastOptions): BroadcastPlan {
  refuseUnknownOptions("Cannot make a broadcast", options, OPTIONS);
  const { channels, queue = 2_000, retries = 2, retryPause = 20, name = "broadcast" } = options ??
    {} as Partial<BroadcastOptions>;
  checkChannels(channels);
  checkNumber("queue", queue, 1);
  checkNumber("retries", retries, 0);
  if (typeof name !== "string" || name === "") {
    throw new DeclarationError("Cannot make a broadcast without a name: give one, or leave it out");
  }
  const rules = { queue, retries, retryPause: toMilliseconds(retryPause, "retryPause") };
  return { name, channels: [...channels], rules };
}

function checkChannels(channels: readonly Channel[] | undefined): void {
  if (!Array.isArray(channels) || channels.length === 0) {
    throw new DeclarationError(
      "Cannot make a broadcast without channels: give { channels: [inProcess()] }, or none()",
    );
  }
  const wrong = channels.findIndex((channel) => typeof channel?.send !== "function");
  if (wrong !== -1) {
    throw new DeclarationError(
      `Cannot broadcast through ${
        describeValue(channels[wrong])
      }: give channels, such as inProcess()`,
    );
  }
  const twice = channels.find((channel, index) => channels.indexOf(channel) !== index);
  if (twice !== undefined) {
    throw new DeclarationError(
      `Cannot broadcast through the channel "${twice.name}" twice: give it once`,
    );
  }
}

function checkNumber(name: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new RangeError(
    `Cannot use ${
      String(value)
    } as ${name} of a broadcast: give a whole number of ${least} or more`,
  );
}

const OPTIONS: readonly string[] = ["channels", "queue", "retries", "retryPause", "name"];
