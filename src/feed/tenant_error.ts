import { HoldfastError } from "../errors.ts";

/** A read or write without a tenant, or of a scope that belongs to another tenant. */
export class TenantError extends HoldfastError {
  /** Always `"tenant"`. */
  override readonly code = "tenant";
}
