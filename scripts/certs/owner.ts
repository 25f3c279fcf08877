/**
 * Who owns a directory of certificates: keys are 0600, so the program that uses them has to run as
 * their owner.
 */
import { spawnSync } from "node:child_process";
import { existsSync, lchownSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** A user and a group by number. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * USER or USER:GROUP, by name or number; without a group the user's own. Throws an Error that says
 * what is not there.
 */
export function ownerOf(text: string): Owner {
  const [user, group, ...more] = text.split(":");
  if (user === undefined || user === "" || group === "" || more.length > 0) {
    throw new Error(`--owner is ${JSON.stringify(text)}; it should be USER or USER:GROUP`);
  }
  const uid = /^\d+$/.test(user) ? Number(user) : idOf("-u", user);
  if (uid === undefined)
    throw new Error(
      `--owner ${text}: there is no user ${user} on this machine (the package and install.sh make the user quorate)`,
    );
  const gid =
    group === undefined
      ? (idOf("-g", user) ?? uid)
      : /^\d+$/.test(group)
        ? Number(group)
        : groupId(group);
  if (gid === undefined)
    throw new Error(`--owner ${text}: there is no group ${group} on this machine`);
  return { uid, gid };
}

/**
 * What the program `id` says, which knows users of every kind; undefined where there is no such
 * user.
 */
function idOf(flag: "-u" | "-g", user: string): number | undefined {
  const { status, stdout } = spawnSync("id", [flag, "--", user], { encoding: "utf8" });
  return status === 0 && /^\d+\n$/.test(stdout) ? Number(stdout) : undefined;
}

function groupId(name: string): number | undefined {
  const { status, stdout } = spawnSync("getent", ["group", name], { encoding: "utf8" });
  const line =
    status === 0 ? stdout : existsSync("/etc/group") ? readFileSync("/etc/group", "utf8") : "";
  const found = line.split("\n").find((one) => one.startsWith(`${name}:`));
  return found === undefined ? undefined : Number(found.split(":")[2]);
}

/** The owner of a directory that is there, or undefined. */
export function directoryOwner(dir: string): Owner | undefined {
  return existsSync(dir) ? statSync(dir) : undefined;
}

/**
 * Changes the owner of a directory and all that is in it. Throws an Error if this process may not.
 */
export function giveTo(dir: string, owner: Owner): void {
  try {
    for (const entry of readdirSync(dir, { recursive: true }))
      lchownSync(join(dir, String(entry)), owner.uid, owner.gid);
    lchownSync(dir, owner.uid, owner.gid);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== "EPERM") throw error;
    throw new Error(
      `${dir} cannot be given to user ${owner.uid}: only root can give files away; run it with sudo (${message})`,
    );
  }
}
