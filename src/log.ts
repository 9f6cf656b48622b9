import { getLogger, type Logger } from "@logtape/logtape";

/**
 * The log of one part of Holdfast, LogTape's category `["holdfast", part]`. Nothing is written
 * anywhere until the service configures LogTape. No payload is ever logged.
 */
export function logOf(
  part:
    | "app"
    | "broadcast"
    | "channel"
    | "check"
    | "claim"
    | "delivery"
    | "feed"
    | "http"
    | "lease"
    | "schedule",
): Logger {
  return getLogger(["holdfast", part]);
}
