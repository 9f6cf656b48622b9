import type { Delivery } from "./holdfast.ts";

/** What happened to one delivery, as its own process saw it. */
export interface LedgerLine {
  /**
   * `"lost"`: the settle was refused, the process lives on. `"acking"`: the ack is about to be
   * written; `"failed"`: the handler is about to throw; `"early"`: it saw one that should have come
   * before it.
   */
  readonly event: "start" | "early" | "acking" | "ack" | "failed" | "lost";
  readonly queue: string;
  readonly id: string;
  readonly attempt: number;
  readonly pid: number;
  /** In milliseconds since 1970. */
  readonly time: number;
}

/** A file to which one process appends; each line is written before the process goes on. */
export class DeliveryLedger {
  readonly #file: Deno.FsFile;

  constructor(path: string) {
    this.#file = Deno.openSync(path, { create: true, append: true });
  }

  /** Appends a line in one write, which a kill cannot cut in half. */
  write(event: LedgerLine["event"], { queue, id, attempt }: Delivery): void {
    const line: LedgerLine = {
      event,
      queue,
      id: String(id),
      attempt: attempt!,
      pid: Deno.pid,
      time: Date.now(),
    };
    this.#file.writeSync(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
  }

  /** The lines of all ledgers of a folder. */
  static async readAll(folder: string): Promise<readonly LedgerLine[]> {
    const lines: LedgerLine[] = [];
    for await (const { name } of Deno.readDir(folder)) {
      const text = await Deno.readTextFile(`${folder}/${name}`);
      lines.push(...text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line)));
    }
    return lines;
  }
}
