import type { App, Driver, Form, Queue, SubscribeOptions, Subscription } from "./holdfast.ts";
import type { Job, JobHandler } from "./lease_service.ts";
import { queueOf, ROLES_TABLES, rolesService, subscribe } from "./roles_service.ts";

/** A service of one queue whose handler is the test's. */
export interface FormService {
  readonly app: App;
  readonly jobs: Subscription<Job>;
}

/** The service in one of the forms; a lease lasts a minute. */
export function formService(driver: Driver, form: Form, handle: JobHandler): FormService {
  const lease: SubscribeOptions<Form, "jobs"> = form === "lease" ? { lease: { minutes: 1 } } : {};
  const jobs = subscribe(ROLES_TABLES[form], "jobs", handle, lease);
  return { app: rolesService(driver, ROLES_TABLES[form], jobs), jobs };
}

/** Its queue. */
export function jobsIn(form: Form): Queue<Job> {
  return queueOf(ROLES_TABLES[form], "jobs");
}
