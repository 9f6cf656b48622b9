import type { ScopeKey } from "../driver/dialect.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import { checkScope } from "./check_scope.ts";
import { checkWatermark } from "./check_watermark.ts";

/** Which scope is followed, and from where. */
export interface FollowOptions extends ScopeKey {
  /** The watermark: the seq of the last event that was seen; 0, all events, unless given. */
  readonly from?: number;
}

/** A scope that is followed, and the seq of the last event that was seen. */
export interface FollowPlace {
  readonly key: ScopeKey;
  readonly from: number;
}

/**
 * Where is followed from.
 *
 * @param what what was attempted, as the error begins
 * @throws {TenantError} without a tenant
 * @throws {WatermarkError} if the watermark is none
 * @throws {DeclarationError} without a scope, or if an option is unknown
 */
export function checkFollow(what: string, options: FollowOptions): FollowPlace {
  refuseUnknownOptions(what, options, FOLLOW);
  return { key: checkScope(what, options), from: checkWatermark(what, options.from) };
}

const FOLLOW: readonly (keyof FollowOptions)[] = ["tenant", "scope", "from"];
