import type { Form } from "./holdfast.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";
import { FORMS } from "./full_service.ts";

/** A promise that holds in every form, or in those that are named. */
export interface FormTest {
  readonly name: string;
  readonly needs?: "connections" | "processes" | "a server";
  readonly forms?: readonly Form[];
  readonly run: (database: TestDatabase, form: Form) => Promise<void>;
}

/** The tests, in each of their forms. */
export function inEachForm(tests: readonly FormTest[]): readonly ConformanceTest[] {
  return FORMS.flatMap((form) =>
    tests.filter(({ forms = FORMS }) => forms.includes(form)).map(({ name, needs, run }) => ({
      name: `${form}: ${name}`,
      // Whoever has row locks has connections and processes.
      needs: form === "row lock" ? "row locks" : needs,
      run: (database: TestDatabase) => run(database, form),
    }))
  );
}
