import { readFacts } from "./check/read_facts.ts";
import type { MessageId, NewRow, PublishStatement, TableFacts } from "./driver/dialect.ts";
import type { Driver } from "./driver/driver.ts";
import { encodePayload } from "./encode_payload.ts";
import { PublishError, SchemaError } from "./errors.ts";
import type { AnyInbox } from "./inbox.ts";
import type { Pool } from "./pool.ts";
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
  readonly #statements = new Map<AnyInbox, Promise<PublishStatement>>();

  constructor(driver: Driver, pool: Pool, runtime: Runtime, wake: (queue: AnyQueue) => void) {
    this.#driver = driver;
    this.#pool = pool;
    this.#runtime = runtime;
    this.#wake = wake;
  }

  /** A table that has been checked already need not be looked at again. */
  know(inbox: AnyInbox, facts: TableFacts): void {
    this.#statements.set(
      inbox,
      Promise.resolve(this.#driver.dialect.publish(inbox.description, facts)),
    );
  }

  async publish(queue: AnyQueue, message: unknown): Promise<Published> {
    const { name } = queue;
    const payload = await encodePayload(queue, message);
    const id = await this.#insert(queue, { id: generateId(queue), payload });
    const published = { id, inserted: true };
    this.#runtime.observe({ type: "published", queue: name, id: published.id, message });
    this.#wake(queue);
    return published;
  }

  async #insert(queue: AnyQueue, row: NewRow): Promise<MessageId> {
    try {
      const { insert, readId } = await this.#statementOf(queue.inbox);
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

  #statementOf(inbox: AnyInbox): Promise<PublishStatement> {
    const known = this.#statements.get(inbox) ?? this.#buildStatement(inbox);
    this.#statements.set(inbox, known);
    known.catch(() => this.#statements.delete(inbox));
    return known;
  }

  async #buildStatement(inbox: AnyInbox): Promise<PublishStatement> {
    const facts = await readFacts(this.#driver, this.#pool, inbox);
    if (facts.problems.length > 0) throw new SchemaError(facts.problems);
    return this.#driver.dialect.publish(inbox.description, facts);
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
