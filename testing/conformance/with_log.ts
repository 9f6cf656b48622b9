import { configure, type LogRecord, reset } from "@logtape/logtape";

/** Runs a test with what Holdfast logs meanwhile, from `info` on. */
export async function withLog(test: (lines: readonly LogRecord[]) => Promise<void>): Promise<void> {
  const lines: LogRecord[] = [];
  await configure({
    sinks: { memory: (line) => void lines.push(line) },
    loggers: [
      { category: "holdfast", sinks: ["memory"], lowestLevel: "info" },
      { category: ["logtape", "meta"], lowestLevel: "error" },
    ],
  });
  try {
    await test(lines);
  } finally {
    await reset();
  }
}
