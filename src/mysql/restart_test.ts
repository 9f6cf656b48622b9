import { testCommitCrash } from "../../testing/conformance/commit_crash.ts";
import { testStopWithoutServer } from "../../testing/conformance/stop_without_server.ts";
import { testRestart } from "../../testing/conformance/restart.ts";
import type { TestDatabase } from "../../testing/conformance/test_database.ts";
import { startMariadb } from "../../tools/servers/mariadb.ts";
import { startMysql } from "../../tools/servers/mysql.ts";
import { mysql, mysqlTx } from "./mod.ts";

const write: TestDatabase["write"] = async (delivery, text) =>
  void await mysqlTx(delivery).execute(text);

testRestart("MariaDB", startMariadb, (url) => mysql(url));
testRestart("MySQL", startMysql, (url) => mysql(url));
testCommitCrash("MariaDB", startMariadb, (url) => mysql(url), write);
testCommitCrash("MySQL", startMysql, (url) => mysql(url), write);
testStopWithoutServer("MariaDB", startMariadb, (url) => mysql(url));
