import { testCommitCrash } from "../../testing/conformance/commit_crash.ts";
import { testStopWithoutServer } from "../../testing/conformance/stop_without_server.ts";
import { testRestart } from "../../testing/conformance/restart.ts";
import { startPostgres } from "../../tools/servers/postgres.ts";
import { postgres, postgresTx } from "./mod.ts";

testRestart("Postgres", startPostgres, (url) => postgres(url));
testCommitCrash(
  "Postgres",
  startPostgres,
  (url) => postgres(url),
  async (delivery, text) => void await postgresTx(delivery).unsafe(text),
);
testStopWithoutServer("Postgres", startPostgres, (url) => postgres(url));
