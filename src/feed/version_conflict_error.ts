import { HoldfastError } from "../errors.ts";

/** An entity has another version than the writer expected: somebody else has written it meanwhile. */
export class VersionConflictError extends HoldfastError {
  /** Always `"version_conflict"`. */
  override readonly code = "version_conflict";
  /** The version that the writer expected; 0 for an entity that was never written. */
  readonly expected: number;
  /** The version that the entity has; 0 if it was never written. */
  readonly actual: number;

  /** Of an entity, as it stands in messages. */
  constructor(entity: string, expected: number, actual: number) {
    super(
      `Cannot write ${entity} over version ${expected}: it has version ${actual}; nothing was ` +
        `written; read it again and decide anew`,
    );
    this.expected = expected;
    this.actual = actual;
  }
}
