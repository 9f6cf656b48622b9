import type { SqlValue } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";

/** What gives out the placeholders of a statement. */
export interface Placeholders<Values> {
  /** The placeholder of one more parameter. It may stand in several places. */
  add(param: (values: Values) => SqlValue): string;
}

/** Numbers a statement's placeholders as it is written. */
export class Parameters<Values> implements Placeholders<Values> {
  readonly #params: ((values: Values) => SqlValue)[] = [];

  /** The placeholder of one more parameter. It may stand in several places. */
  add(param: (values: Values) => SqlValue): string {
    this.#params.push(param);
    return `$${this.#params.length}`;
  }

  /** The placeholders of this statement for what needs only a part of the values. */
  of<Part>(part: (values: Values) => Part): Placeholders<Part> {
    return { add: (param) => this.add((values) => param(part(values))) };
  }

  /** The statement, with all the parameters that were added. */
  statement(text: string): Statement<Values> {
    return { text, params: this.#params };
  }
}
