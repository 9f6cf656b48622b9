import { testRestart } from "../../testing/conformance/restart.ts";
import { startMariadb } from "../../tools/servers/mariadb.ts";
import { startMysql } from "../../tools/servers/mysql.ts";
import { mysql } from "./mod.ts";

testRestart("MariaDB", startMariadb, (url) => mysql(url));
testRestart("MySQL", startMysql, (url) => mysql(url));
