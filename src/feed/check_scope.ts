import type { ScopeKey } from "../driver/feed_statements.ts";
import { DeclarationError } from "../errors.ts";
import { problemOfName } from "./check_name.ts";
import { TenantError } from "./tenant_error.ts";

/**
 * The scope that is meant, and whose it is.
 *
 * @param what what was attempted, as the error begins: `Cannot write to feed "worlds"`
 * @throws {TenantError} without a tenant
 * @throws {DeclarationError} without a scope
 */
export function checkScope(what: string, given: ScopeKey): ScopeKey {
  const { tenant, scope } = Object(given) as ScopeKey;
  const ofTenant = problemOfName(tenant);
  if (ofTenant !== undefined) {
    throw new TenantError(
      `${what}: the tenant ${ofTenant}; give { tenant, scope } with the tenant that asks`,
    );
  }
  const ofScope = problemOfName(scope);
  if (ofScope === undefined) return { tenant, scope };
  throw new DeclarationError(`${what}: the scope ${ofScope}; give { tenant, scope }`);
}
