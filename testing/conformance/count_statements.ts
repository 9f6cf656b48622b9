import type { Driver, Session } from "../../src/driver/driver.ts";

/** How many statements a driver has sent. */
export interface StatementCount {
  readonly count: number;
}

/** Counts what a driver's sessions send from now on; a transaction in one turn counts as one. */
export function countStatements(driver: Driver): StatementCount {
  const counted = { count: 0 };
  const open = driver.session.bind(driver);
  driver.session = async () => {
    const session = await open();
    for (const method of ["query", "queryEach", "transact"] as const) {
      count(session, method, () => counted.count++);
    }
    return session;
  };
  return counted;
}

function count(
  session: Session,
  method: "query" | "queryEach" | "transact",
  tell: () => void,
): void {
  const original = session[method] as ((...args: unknown[]) => unknown) | undefined;
  if (original === undefined) return;
  Object.defineProperty(session, method, {
    value: (...args: unknown[]) => {
      tell();
      return original.apply(session, args);
    },
  });
}
