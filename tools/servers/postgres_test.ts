import { checkServer } from "./check_server.ts";
import { testServer } from "./test_server.ts";
import { startPostgres } from "./postgres.ts";
import { countPostgresMarks, writePostgresMark } from "./postgres_marks.ts";

testServer(
  "Postgres starts, survives kill, stop and restart, and leaves nothing",
  () =>
    checkServer({
      start: startPostgres,
      write: writePostgresMark,
      count: countPostgresMarks,
      durable: true,
    }),
);
