/**
 * What a database is to Holdfast: for those who write a driver. Services need none of it.
 *
 * A {@link Driver} opens a database and gives {@link Session}s, which do I/O and nothing else. Its
 * {@link Dialect} writes the statements, and is pure.
 *
 * ```ts
 * import { bind, type Statement } from "@holdfast/inbox/driver";
 *
 * const remove: Statement<{ readonly id: bigint }> = {
 *   text: "DELETE FROM jobs WHERE id = ?",
 *   params: [({ id }) => id],
 * };
 * console.log(remove.text, bind(remove, { id: 1n }));
 * ```
 *
 * @module
 */

export { expiryOf, nextSecond } from "./dialect.ts";
export type {
  AdvisoryLockStatements,
  Burial,
  Candidate,
  CandidatePart,
  ClaimAtOnce,
  ClaimedRow,
  Clock,
  CountingUpdate,
  DeadLetterUse,
  Dialect,
  EntityKey,
  EventsAfter,
  Failure,
  FeedStatements,
  FeedTables,
  FindThenTake,
  GuardedStatement,
  GuardedWrite,
  LeaseStatements,
  LeaseTimes,
  LeaseToken,
  LockedRow,
  LockedRowAt,
  LockKeyPart,
  MessageId,
  NewEvent,
  NewRow,
  NewState,
  NextDue,
  NextDueStatement,
  Notification,
  OwnFetch,
  PayloadStorage,
  PollPlan,
  PublishStatement,
  PublishUse,
  QueueUse,
  RowAt,
  RowContent,
  RowLockStatements,
  ScopeKey,
  SearchPlan,
  SearchValues,
  SessionWrites,
  StoredEvent,
  TableDescription,
  TableFacts,
} from "./dialect.ts";
export type {
  Driver,
  JoinedTransaction,
  LockHolder,
  QueryAdapter,
  QueryResult,
  Session,
  SqlRow,
  SqlValue,
} from "./driver.ts";
export type { Form } from "./form.ts";
export type { Listening, NotificationListener } from "./listen.ts";
export type { TimeRole } from "./roles.ts";
export { bind } from "./statement.ts";
export { query, run, runEach, runStep } from "./steps.ts";
export type { Step, Steps } from "./steps.ts";
export type { Statement } from "./statement.ts";
