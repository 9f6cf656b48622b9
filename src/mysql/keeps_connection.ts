import type { MysqlConnection } from "./connection.ts";
import type { ConnectionPool } from "./pool.ts";

/** Whether each connection of the pool is one of the server's, and stays the same one. */
export async function keepsConnection(pool: ConnectionPool): Promise<boolean> {
  const connection = await pool.take();
  try {
    await connection.run("START TRANSACTION", []);
    const seen = [await idOf(connection), await idOf(connection)];
    await connection.run("ROLLBACK", []);
    const first = connection.idOfClient ?? seen[0]!;
    return seen.every((id) => BigInt.asUintN(BITS_OF_CLIENT, id) === first);
  } catch (error) {
    connection.drop();
    throw error;
  } finally {
    pool.give(connection);
  }
}

/** A proxy may answer the plain question by itself. */
async function idOf(connection: MysqlConnection): Promise<bigint> {
  const { rows: [row] } = await connection.run("SELECT 1 AS one, CONNECTION_ID() AS id", []);
  return BigInt(row!.id as number | bigint);
}

/** A server that greets a client tells no more of its id. */
const BITS_OF_CLIENT = 32;
