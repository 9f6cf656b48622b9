/** Ends a subscription: called, or by `using`. The second time it does nothing. */
export type Unsubscribe = (() => void) & Disposable;

/** What ends a subscription by this. */
export function unsubscribeBy(end: () => void): Unsubscribe {
  const call = () => end();
  return Object.assign(call, { [Symbol.dispose]: call });
}
