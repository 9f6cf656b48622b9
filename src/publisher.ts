import { readFacts } from "./check/read_facts.ts";
import { now } from "./clock.ts";
import { clockOf } from "./clock_of.ts";
import type { MessageId, NewRow, PublishStatement, TableFacts } from "./driver/dialect.ts";
import type { Driver } from "./driver/driver.ts";
import { encodePayload } from "./encode_payload.ts";
import { PublishError, SchemaError } from "./errors.ts";
import type { AnyInbox } from "./inbox.ts";
import type { Pool } from "./pool.ts";
import { checkPublish, type PublishOptions } from "./publish_options.ts";
import type { AnyQueue } from "./queue.ts";
import type { Runtime } from "./runtime.ts";
import { asError } from "./thrown.ts";

/** What a publish gives back. */
export interface Published {
  /** The id of the message's row: integers are `bigint`, all else is text. */
  readonly id: MessageId;
  /** Whether a row was inserted. */
  readonly inserted: boolean;
}

/** Inserts messages, and wakes whoever waits for them once they are committed. */
export class Publisher {
  readonly #driver: Driver;
  readonly #pool: Pool;
  readonly #runtime: Runtime;
  readonly #wake: (queue: AnyQueue) => void;
  readonly #facts = new Map<AnyInbox, TableFacts>();
  /** By inbox, and by the names of the other columns that are written. */
  readonly #statements = new Map<AnyInbox, Map<string, PublishStatement>>();

  constructor(driver: Driver, pool: Pool, runtime: Runtime, wake: (queue: AnyQueue) => void) {
    this.#driver = driver;
    this.#pool = pool;
    this.#runtime = runtime;
    this.#wake = wake;
  }

  /** A table that has been checked already need not be looked at again. */
  know(inbox: AnyInbox, facts: TableFacts): void {
    this.#facts.set(inbox, facts);
  }

  async publish(
    queue: AnyQueue,
    message: unknown,
    options: PublishOptions = {},
  ): Promise<Published> {
    const checked = checkPublish(queue, options);
    const payload = await encodePayload(queue, message);
    const id = await this.#insert(queue, {
      id: generateId(queue),
      payload,
      group: queue.name,
      now: now(),
      ...checked,
    });
    const published = { id, inserted: true };
    this.#runtime.observe({ type: "published", queue: queue.name, id: published.id, message });
    this.#wake(queue);
    return published;
  }

  async #insert(queue: AnyQueue, row: NewRow): Promise<MessageId> {
    try {
      const { insert, readId } = await this.#statementOf(queue.inbox, Object.keys(row.columns));
      const [returned] = await this.#pool.query(insert, row);
      return row.id ?? readId(returned!);
    } catch (cause) {
      if (cause instanceof SchemaError) throw cause;
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new PublishError(
        `Cannot publish to queue "${queue.name}" (table "${queue.inbox.table}"): ${reason}`,
        { cause },
      );
    }
  }

  async #statementOf(inbox: AnyInbox, columns: readonly string[]): Promise<PublishStatement> {
    const statements = this.#statements.get(inbox) ?? new Map<string, PublishStatement>();
    this.#statements.set(inbox, statements);
    const key = JSON.stringify(columns);
    const known = statements.get(key);
    if (known !== undefined) return known;
    const facts = await this.#factsOf(inbox, columns);
    const use = { clock: clockOf(inbox, this.#runtime), columns };
    const statement = this.#driver.dialect.publish(inbox.description, facts, use);
    statements.set(key, statement);
    return statement;
  }

  /** A column may have been added since the table was looked at. */
  async #factsOf(inbox: AnyInbox, columns: readonly string[]): Promise<TableFacts> {
    const known = this.#facts.get(inbox);
    if (known !== undefined && columns.every((name) => known.columns.has(name))) return known;
    const facts = await this.#readFacts(inbox);
    this.know(inbox, facts);
    return facts;
  }

  async #readFacts(inbox: AnyInbox): Promise<TableFacts> {
    const facts = await readFacts(this.#driver, this.#pool, inbox);
    if (facts.problems.length > 0) throw new SchemaError(facts.problems);
    return facts;
  }
}

function generateId({ name, inbox }: AnyQueue): MessageId | undefined {
  if (inbox.generateId === undefined) return undefined;
  const cannot = `Cannot publish to queue "${name}": generate of "${inbox.table}"`;
  let id: unknown;
  try {
    id = inbox.generateId();
  } catch (thrown) {
    const cause = asError(thrown, "generate");
    throw new PublishError(`${cannot} failed: ${cause.message}`, { cause });
  }
  if (typeof id === "bigint" || typeof id === "string" && isStorable(id)) return id;
  throw new PublishError(
    `${cannot} gave ${typeof id} ${
      JSON.stringify(id) ?? ""
    }; let it give a bigint, or text that is ` +
      `not empty, has no NUL and is well-formed`,
  );
}

function isStorable(id: string): boolean {
  return id !== "" && !id.includes("\0") && id.isWellFormed();
}
