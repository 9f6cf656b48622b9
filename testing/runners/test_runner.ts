/** What the suites of this folder use of a test runner in the style of `describe` and `it`. */
export interface TestRunner {
  describe(name: string, define: () => void): unknown;
  it(name: string, test: () => Promise<void>): unknown;
  beforeEach(hook: () => Promise<void>): unknown;
  afterEach(hook: () => Promise<void>): unknown;
}
