/** How a claim holds a row: its open transaction, an expiry written in it, or a session's lock. */
export type Form = "row lock" | "lease" | "advisory lock";
