import { describeValue } from "../describe_value.ts";
import { WatermarkError } from "./watermark_error.ts";

/**
 * A watermark: the number of the last event of a scope that was seen, 0 before the first.
 *
 * @param what what was attempted, as the error begins
 * @throws {WatermarkError} if it is anything else
 */
export function checkWatermark(what: string, given: unknown = 0): number {
  if (Number.isSafeInteger(given) && given as number >= 0) return given as number;
  throw new WatermarkError(
    `${what} from ${
      describeValue(given)
    }: a watermark is the seq of the last event that was seen, ` +
      `a whole number from 0, never a time or text; nothing was read`,
  );
}
