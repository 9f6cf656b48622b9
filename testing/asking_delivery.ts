import { AsyncLocalStorage } from "node:async_hooks";

/** The name of the delivery whose handler has asked for the I/O that is running, outside its scope. */
export const askingDelivery: AsyncLocalStorage<string | undefined> = new AsyncLocalStorage();
