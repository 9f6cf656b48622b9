import { testRestart } from "../../testing/conformance/restart.ts";
import { startPostgres } from "../../tools/servers/postgres.ts";
import { postgres } from "./mod.ts";

testRestart("Postgres", startPostgres, (url) => postgres(url));
