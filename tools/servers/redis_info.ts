/** What a Redis at this port tells of itself; empty if it does not answer. */
export async function redisInfo(port: number): Promise<ReadonlyMap<string, string>> {
  try {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    await connection.write(new TextEncoder().encode("INFO server\r\nQUIT\r\n"));
    const text = await new Response(connection.readable).text();
    return new Map(text.split("\r\n").map(entry));
  } catch {
    return new Map();
  }
}

function entry(line: string): [string, string] {
  const [name = "", ...value] = line.split(":");
  return [name, value.join(":")];
}
