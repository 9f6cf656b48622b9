import { checkServer } from "./check_server.ts";
import { testServer } from "./test_server.ts";
import { startRedis } from "./redis.ts";

testServer("Redis starts, survives kill, stop and restart, and leaves nothing", () =>
  checkServer({
    start: startRedis,
    write: async (url) => void await ask(url, "RPUSH marks 1"),
    count: async (url) => Number((await ask(url, "LLEN marks")).slice(1)),
    durable: false,
  }));

async function ask(url: string, command: string): Promise<string> {
  const { hostname, port } = new URL(url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  await connection.write(new TextEncoder().encode(`${command}\r\nQUIT\r\n`));
  const [answer = ""] = (await new Response(connection.readable).text()).split("\r\n");
  return answer;
}
