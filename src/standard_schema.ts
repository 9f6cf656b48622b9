import { PayloadError } from "./errors.ts";

/**
 * A schema of any library that follows Standard Schema version 1 (standardschema.dev): Zod, Valibot,
 * ArkType and others. Only what Holdfast uses of it is declared.
 */
export interface StandardSchema<In, Out = In> {
  /** The schema's properties under the name that the specification fixes. */
  readonly "~standard": {
    /** The specification's version. */
    readonly version: 1;
    /** Checks a value; the result holds the output, or the issues. */
    readonly validate: (
      value: unknown,
    ) => StandardResult<Out> | Promise<StandardResult<Out>>;
    /** Carries the types; absent at run time. */
    readonly types?: { readonly input: In; readonly output: Out } | undefined;
  };
}

/** What `validate` gives: the output, or what is wrong with the input. */
export type StandardResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One thing that is wrong with a value. */
export interface StandardIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where: property names from the outside in. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * The output of a schema for a value.
 *
 * @throws {PayloadError} if the schema refuses the value; it says where and why
 */
export async function validate<In, Out>(
  schema: StandardSchema<In, Out>,
  value: unknown,
): Promise<Out> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map(describe).join("; ");
  throw new PayloadError(
    `The schema refuses it: ${issues === "" ? "it does not say why" : issues}`,
  );
}

function describe({ message, path }: StandardIssue): string {
  const place = (path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  return place.length === 0 ? message : `${place.join(".")}: ${message}`;
}
