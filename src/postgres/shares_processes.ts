import { deadline } from "../driver/real_time.ts";
import type { PostgresSql } from "./client.ts";
import { failure, noAnswer } from "./failure.ts";
import { type Sighting, WHO_SERVES, whoServed } from "./sighting.ts";
import { send } from "./values.ts";

/**
 * Whether a pooler gives the connections of these clients, which may be one and the same, another
 * process of the server for each statement or transaction. A pooler that does is not always caught,
 * the less so the more connections wait for it; nobody else is ever suspected.
 */
export async function sharesProcesses(
  one: PostgresSql,
  other: PostgresSql,
  patience: number,
): Promise<boolean> {
  const sightings: Sighting[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const clients of [[one], [other], [other], [one], [one, other]]) {
      await Promise.all(
        clients.map(async (client) => sightings.push(await look(client, patience))),
      );
      if (areShared(sightings)) return true;
    }
  }
  return false;
}

/**
 * Whether a connection was served by another process than before, or another connection by the same
 * process in the meantime. While it lasts, a connection that has a process of its own meets neither.
 */
export function areShared(sightings: readonly Pick<Sighting, "connection" | "process">[]): boolean {
  return sightings.some((first, start) =>
    sightings.some((last, end) =>
      end > start && last.connection === first.connection &&
      sightings.slice(start + 1, end + 1).some(({ connection, process }) =>
        (connection === first.connection) !== (process === first.process)
      )
    )
  );
}

async function look(client: PostgresSql, patience: number): Promise<Sighting> {
  const attempt = "find out whether a pooler shares connections to the server";
  try {
    const sent = send(client, WHO_SERVES, [], false);
    return whoServed(await deadline(patience, sent, () => noAnswer(attempt, patience)));
  } catch (error) {
    throw failure(error, attempt);
  }
}

const ROUNDS = 20;
