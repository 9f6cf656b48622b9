/** The protocol that every server since MySQL 3.21 greets with; errors begin with another byte. */
const PROTOCOL = 10;
const HEADER = 4;

/** The version that a MySQL or MariaDB at this port greets with, if it takes connections. */
export async function mysqlGreeting(port: number): Promise<string | undefined> {
  try {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    const packet = new Uint8Array(256);
    const length = await connection.read(packet) ?? 0;
    if (length <= HEADER || packet[HEADER] !== PROTOCOL) return undefined;
    const end = packet.indexOf(0, HEADER + 1);
    const version = new TextDecoder().decode(packet.subarray(HEADER + 1, end));
    // MariaDB once put this before its own, for old replicas.
    return version.replace(/^5\.5\.5-/, "");
  } catch {
    return undefined;
  }
}
