/** Lets a few milliseconds pass between two looks at a server. */
export function pause(milliseconds = 20): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
