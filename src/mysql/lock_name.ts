/**
 * The name of a key's lock, of which both are SQL. MySQL does not tell names apart by case and takes
 * no more than 64 characters, so it is a hash; and it is one of all databases of the server, so the
 * hash is of the database too.
 */
export function lockName(key: string): string {
  const text = `CONCAT(CONVERT(DATABASE() USING utf8mb4), '.', CONVERT(${key} USING utf8mb4))`;
  return `CONCAT('hf:', LEFT(SHA2(${text}, 256), 60))`;
}
