import type { DeadLetterUse, MessageId, TableFacts } from "./driver/dialect.ts";
import { missingInBurial } from "./driver/burial_columns.ts";
import { DeclarationError, type SchemaProblem } from "./errors.ts";
import type { AnyInbox } from "./inbox.ts";
import { generateId } from "./generate_id.ts";
import type { AnyQueue } from "./queue.ts";

/** Where messages go that are given up: a group of the same table, another inbox, or its queue. */
export type DeadLetterTarget = string | AnyInbox | AnyQueue;

/**
 * The queue that messages go to.
 *
 * @throws {TypeError} if it is neither a name, nor an inbox, nor a queue
 * @throws {DeclarationError} if it is the queue that they come from, or the table has no groups
 */
export function checkDeadLetter(
  target: DeadLetterTarget | undefined,
  queue: AnyQueue,
): AnyQueue | undefined {
  if (target === undefined) return undefined;
  const { name, inbox } = queue;
  const shown = typeof target === "string" ? JSON.stringify(target) : describe(target);
  const cannot = `Cannot dead-letter messages of queue "${name}" to ${shown}`;
  if (typeof target === "string") {
    if (target === "") throw new TypeError(`${cannot}: give the name of a group`);
    if (inbox.description.group === undefined) {
      throw new DeclarationError(
        `${cannot}: "${inbox.table}" has no groups; give it the role group, or give another inbox`,
      );
    }
  }
  const dead = queueOf(target, inbox, cannot);
  if (isOwnTable(dead, queue) && (inbox.description.group === undefined || dead.name === name)) {
    throw new DeclarationError(
      `${cannot}: they would be delivered again; give another group or inbox`,
    );
  }
  return dead;
}

/** How statements move a row there. */
export function deadLetterUse(
  queue: AnyQueue,
  dead: AnyQueue | undefined,
  facts: ReadonlyMap<AnyInbox, TableFacts>,
): DeadLetterUse | undefined {
  if (dead === undefined) return undefined;
  const group = dead.inbox.description.group === undefined ? undefined : dead.name;
  if (isOwnTable(dead, queue)) return { group };
  return { group, table: dead.inbox.description, facts: facts.get(dead.inbox)! };
}

/** What keeps rows from being moved there. */
export function deadLetterProblems(
  queue: AnyQueue,
  dead: AnyQueue | undefined,
  facts: ReadonlyMap<AnyInbox, TableFacts>,
): readonly SchemaProblem[] {
  const use = deadLetterUse(queue, dead, facts);
  const [source, target] = [facts.get(queue.inbox), use?.facts];
  if (use?.table === undefined || source === undefined || target === undefined) return [];
  const { description } = queue.inbox;
  return missingInBurial(description, source, { table: use.table, facts: target })
    .map((column) => ({
      table: dead!.inbox.table,
      column,
      subscription: queue.name,
      problem: `a message that is dead-lettered has nothing for this column, which may not be NULL`,
      fix:
        `give it a default, let it be NULL, or add a column of this name to "${queue.inbox.table}"`,
    }));
}

/** The id that a message gets there, where the service makes it. */
export function deadLetterId(queue: AnyQueue, dead: AnyQueue): MessageId | undefined {
  return isOwnTable(dead, queue) ? undefined : generateId(dead, "dead-letter a message to");
}

/** Whether messages stay in their table. */
export function isOwnTable(dead: AnyQueue, queue: AnyQueue): boolean {
  return dead.inbox === queue.inbox ||
    dead.inbox.table.toLowerCase() === queue.inbox.table.toLowerCase();
}

function queueOf(target: DeadLetterTarget, own: AnyInbox, cannot: string): AnyQueue {
  if (typeof target === "string") return own.queue(target) as AnyQueue;
  const { queue, inbox } = Object(target) as Partial<AnyInbox & AnyQueue>;
  if (inbox !== undefined) return target as AnyQueue;
  if (typeof queue === "function") return (target as AnyInbox).queue() as AnyQueue;
  throw new TypeError(`${cannot}: give the name of a group, an inbox or a queue`);
}

function describe(target: Exclude<DeadLetterTarget, string>): string {
  const { table, name } = Object(target) as { readonly table?: unknown; readonly name?: unknown };
  return table === undefined && name === undefined ? String(target) : `"${table ?? name}"`;
}
