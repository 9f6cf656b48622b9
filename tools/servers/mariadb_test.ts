import { checkServer } from "./check_server.ts";
import { testServer } from "./test_server.ts";
import { startMariadb } from "./mariadb.ts";
import { countMysqlMarks, writeMysqlMark } from "./mysql_marks.ts";

testServer(
  "MariaDB starts, survives kill, stop and restart, and leaves nothing",
  () =>
    checkServer({
      start: startMariadb,
      write: writeMysqlMark,
      count: countMysqlMarks,
      durable: true,
    }),
);
