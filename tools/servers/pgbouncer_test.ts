import { checkServer } from "./check_server.ts";
import { startPgBouncer } from "./pgbouncer.ts";
import { startPostgres } from "./postgres.ts";
import { countPostgresMarks, writePostgresMark } from "./postgres_marks.ts";
import { testServer } from "./test_server.ts";

for (const poolMode of ["transaction", "session"] as const) {
  testServer(`PgBouncer by ${poolMode} starts, survives, and leaves nothing`, async () => {
    await using postgres = await startPostgres();
    await checkServer({
      start: () => startPgBouncer({ postgres: postgres.url, poolMode }),
      write: writePostgresMark,
      count: countPostgresMarks,
      durable: true,
    });
  });
}
