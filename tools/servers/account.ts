import { MissingServerError } from "./missing_server_error.ts";

/** A user of the operating system. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Who a server that refuses root runs as: `user` when the caller is root, else nobody but the
 * caller.
 */
export async function serviceAccount(user: string): Promise<Account | undefined> {
  if (Deno.uid() !== 0) return undefined;
  const account = await accountNamed(user, "/etc/passwd");
  if (account !== undefined) return account;
  throw new MissingServerError(
    `Root may not run this server, and there is no user ${user} to run it as: ` +
      `create one or run the tests as somebody else`,
  );
}

/** Looks a user up in a passwd file. */
export async function accountNamed(user: string, passwd: string): Promise<Account | undefined> {
  for (const line of (await Deno.readTextFile(passwd)).split("\n")) {
    const [name, , uid, gid] = line.split(":");
    if (name === user) return { uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
}
