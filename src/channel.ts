/**
 * Carries short texts from one process to others, as best it can: a text may be lost, or arrive twice,
 * and whoever relies on it also polls. Wakes and broadcasts go through channels.
 */
export interface Channel {
  /** What it is called in logs and statistics: `redis`. */
  readonly name: string;
  /** How many bytes of UTF-8 a text may have; absent where there is no limit. */
  readonly limit?: number;
  /**
   * Opens it. From then on it keeps itself open: a connection that is lost is made again, with pauses
   * that grow. Opened once, unless it says that several may have it open; may be opened again after
   * `close`, which may also come while it opens.
   *
   * @throws {DeclarationError} if it cannot work here at all, with the reason
   */
  open(listener: ChannelListener): Promise<void>;
  /** Sends a text to every process that has the channel open, this one included, if anything arrives there. */
  send(text: string): Promise<void>;
  /**
   * Closes every connection that it has.
   *
   * @param listener whom it was opened for: a channel that several have open stays open for the others;
   * absent, it is closed for all of them
   */
  close(listener?: ChannelListener): Promise<void>;
}

/** Who is told of what arrives on a channel. */
export interface ChannelListener {
  /** A text has arrived. */
  receive(text: string): void;
  /** Texts may have been missed: the connection was lost, and is there again. */
  missed(): void;
}
