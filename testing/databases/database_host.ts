/** Where test databases are: a server, or this machine's folder for temporary files. */
export interface DatabaseHost {
  /** The address of one of them, for `connect`. */
  url(name: string): string;
  /**
   * Makes an empty one.
   *
   * @throws {DriverError} if that fails; where the user may not, it names the grant that is needed
   */
  create(name: string): Promise<void>;
  /**
   * Makes a prepared one the template of others, once nobody is connected to it.
   *
   * @returns `undefined` where something in it cannot be copied
   * @throws {LeakError} if somebody stays connected
   */
  template(name: string): Promise<Template | undefined>;
  /**
   * Drops one, if it is there, as soon as nobody is connected to it, and in the end all the same.
   *
   * @returns each connection that was still open, as a line of a report
   */
  drop(name: string): Promise<readonly string[]>;
  /** The names of those that nobody is connected to, whoever made them. */
  unused(): Promise<readonly string[]>;
}

/** A database that others are copied from. */
export interface Template {
  /** Makes a copy of it, under a name that is free. */
  copyTo(name: string): Promise<void>;
}
