import { DeclarationError } from "./errors.ts";

/** A channel needs a package that is not installed. A `Broadcast` goes on without the channel. */
export class MissingPackageError extends DeclarationError {
  /** The package's name. */
  readonly package: string;

  /** Says who needs the package, and how it is installed. */
  constructor(channel: string, name: string, options?: ErrorOptions) {
    super(
      `Cannot open the channel "${channel}": the package ${name} did not load; ` +
        `install it (deno add npm:${name}), or leave the channel out`,
      options,
    );
    this.package = name;
  }
}
