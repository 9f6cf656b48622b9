import postgres from "postgres";

/** Puts a mark into a Postgres, for tests of servers. */
export async function writePostgresMark(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await sql`CREATE TABLE IF NOT EXISTS mark (at timestamptz)`;
    await sql`INSERT INTO mark VALUES (now())`;
  } finally {
    await sql.end();
  }
}

/** How many marks there are. */
export async function countPostgresMarks(url: string): Promise<number> {
  const sql = postgres(url, { max: 1 });
  try {
    return (await sql`SELECT * FROM mark`).length;
  } finally {
    await sql.end();
  }
}
