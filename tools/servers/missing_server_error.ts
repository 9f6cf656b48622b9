/** A server cannot be started here, because something is not installed or not allowed. */
export class MissingServerError extends Error {
  /** The name of this class. */
  override readonly name = "MissingServerError";
}
