import type { SqlValue } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";

/** Numbers a statement's placeholders as it is written. */
export class Parameters<Values> {
  readonly #params: ((values: Values) => SqlValue)[] = [];

  /** The placeholder of one more parameter. It may stand in several places. */
  add(param: (values: Values) => SqlValue): string {
    this.#params.push(param);
    return `$${this.#params.length}`;
  }

  /** The statement, with all the parameters that were added. */
  statement(text: string): Statement<Values> {
    return { text, params: this.#params };
  }
}
