import { hostNow } from "../test_time.ts";
import type { DatabaseHost, Template } from "./database_host.ts";
import { newDatabaseName } from "./database_name.ts";

/** Makes the template when it is first needed, and anew when it has grown old. */
export class TemplateKeeper {
  readonly #host: DatabaseHost;
  readonly #prepare: (name: string) => Promise<void>;
  readonly #names = new Set<string>();
  #making: Promise<Template | undefined> | undefined;
  #madeAt = 0;

  /** @param prepare fills an empty database */
  constructor(host: DatabaseHost, prepare: (name: string) => Promise<void>) {
    this.#host = host;
    this.#prepare = prepare;
  }

  /**
   * The template; whoever asks while it is made waits for it. One that failed is tried again when it
   * is asked for the next time.
   *
   * @returns `undefined` where something in it cannot be copied
   */
  template(): Promise<Template | undefined> {
    if (this.#making !== undefined && hostNow() - this.#madeAt < MILLISECONDS_TO_USE) {
      return this.#making;
    }
    const making = this.#make();
    this.#making = making;
    this.#madeAt = hostNow();
    making.catch(() => {
      if (this.#making === making) this.#making = undefined;
    });
    return making;
  }

  /** Drops every template that was made. */
  async close(): Promise<void> {
    await this.#making?.catch(() => {});
    this.#making = undefined;
    for (const name of this.#names) await this.#drop(name);
  }

  async #make(): Promise<Template | undefined> {
    const name = newDatabaseName();
    this.#names.add(name);
    try {
      await this.#host.create(name);
      await this.#prepare(name);
      const template = await this.#host.template(name);
      if (template === undefined) await this.#drop(name);
      return template;
    } catch (error) {
      await this.#drop(name).catch(() => {});
      throw error;
    }
  }

  async #drop(name: string): Promise<void> {
    this.#names.delete(name);
    await this.#host.drop(name);
  }
}

/** Well before others take it for left behind. */
const MILLISECONDS_TO_USE = 1_800_000;
