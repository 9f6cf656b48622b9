import { checkServer } from "./check_server.ts";
import { testServer } from "./test_server.ts";
import { startMysql } from "./mysql.ts";
import { countMysqlMarks, writeMysqlMark } from "./mysql_marks.ts";

testServer("MySQL starts, survives kill, stop and restart, and leaves nothing", () =>
  checkServer({
    start: startMysql,
    write: writeMysqlMark,
    count: countMysqlMarks,
    durable: true,
  }));
