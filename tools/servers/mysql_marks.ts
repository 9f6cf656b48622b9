import { createConnection, type RowDataPacket } from "npm:mysql2@^3/promise";

/** Puts a mark into a MySQL or MariaDB, for tests of servers. */
export async function writeMysqlMark(url: string): Promise<void> {
  const connection = await createConnection(url);
  try {
    await connection.query("CREATE TABLE IF NOT EXISTS mark (at TIMESTAMP)");
    await connection.query("INSERT INTO mark VALUES (now())");
  } finally {
    await connection.end();
  }
}

/** How many marks there are. */
export async function countMysqlMarks(url: string): Promise<number> {
  const connection = await createConnection(url);
  try {
    const [rows] = await connection.query<RowDataPacket[]>("SELECT * FROM mark");
    return rows.length;
  } finally {
    await connection.end();
  }
}
