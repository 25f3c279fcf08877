/** The flags of the commands that make a member's data directory, as etcdutl has them. */
import { lookup } from "node:dns/promises";
import { existsSync, readdirSync } from "node:fs";
import { type NewMember, newMember } from "@quorate/backup";
import { Exit, ExitCode, type Flags, type Invocation } from "@quorate/cli";
import { peerUrl } from "../connect/peer-url.ts";
import { plainPath } from "../files/data-dir.ts";

export const newMemberFlags: Flags = {
  "data-dir": {
    kind: "string",
    defaultText: "",
    doc: "data directory to make (default NAME.quorate)",
  },
  "wal-dir": {
    kind: "string",
    defaultText: "",
    doc: "directory of the log to make (default inside the data directory)",
  },
  "initial-cluster": {
    kind: "string",
    defaultText: "default=http://localhost:2380",
    doc: "names and peer URLs of all members of the restored cluster",
  },
  "initial-cluster-token": {
    kind: "string",
    defaultText: "etcd-cluster",
    doc: "token of the restored cluster",
  },
  "initial-advertise-peer-urls": {
    kind: "string",
    defaultText: "http://localhost:2380",
    doc: "this member's peer URLs",
  },
  name: { kind: "string", defaultText: "default", doc: "this member's name" },
};

/**
 * The member of the flags, validated before anything is written. Rejects with Exit, with
 * etcd's texts.
 */
export async function newMemberOf({ flags }: Invocation): Promise<NewMember> {
  const name = flags.string("name");
  const urls = parseInitialCluster(flags.string("initial-cluster"));
  await checkLocalMember(urls, name, flags.string("initial-advertise-peer-urls"));
  const dataDir = plainPath(flags.string("data-dir") || `${name}.quorate`);
  const walDir = plainPath(flags.string("wal-dir"));
  if (existsSync(dataDir) && !isEmptyDirectory(dataDir)) {
    throw new Exit(
      ExitCode.error,
      `data-dir ${JSON.stringify(dataDir)} not empty or could not be read`,
    );
  }
  if (walDir !== "" && existsSync(walDir))
    throw new Exit(ExitCode.error, `wal-dir ${JSON.stringify(walDir)} exists`);
  return newMember(
    name,
    urls,
    flags.string("initial-cluster-token"),
    dataDir,
    walDir || `${dataDir}/member/wal`,
  );
}

function isEmptyDirectory(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

function refuse(message: string): never {
  throw new Exit(ExitCode.error, message);
}

/**
 * --initial-cluster and --initial-advertise-peer-urls as a member parses them at startup, with
 * etcd's texts.
 *
 * "name=url,name=url,...": the URLs of each member. Throws Exit.
 */
function parseInitialCluster(text: string): Map<string, string[]> {
  const cluster = new Map<string, string[]>();
  for (const pair of text.split(",").filter((one) => one !== "")) {
    const at = pair.indexOf("=");
    const name = at < 0 ? pair : pair.slice(0, at);
    cluster.set(
      name,
      [...(cluster.get(name) ?? []), peerUrl(at < 0 ? "" : pair.slice(at + 1))].sort(),
    );
  }
  const all = [...cluster.values()].flat();
  if (new Set(all).size < all.length) refuse(`initial cluster ${text} has duplicate url`);
  return cluster;
}

/**
 * Checks that the cluster lists member `name` with the URLs that it advertises; resolves host names
 * where the texts differ. Rejects with Exit.
 */
async function checkLocalMember(
  cluster: ReadonlyMap<string, readonly string[]>,
  name: string,
  advertised: string,
): Promise<void> {
  const listed =
    cluster.get(name) ??
    refuse(`couldn't find local name ${JSON.stringify(name)} in the initial cluster configuration`);
  const urls = [...new Set(advertised.split(",").map(peerUrl))].sort();
  if (urls.join() === listed.join()) return;
  const resolveAll = async (some: readonly string[]): Promise<string> =>
    (await Promise.all(some.map(resolved))).sort().join();
  if ((await resolveAll(urls)) === (await resolveAll(listed))) return;
  const missing = listed.filter((url) => !urls.includes(url));
  if (missing.length > 0) {
    const pairs = missing.map((url) => `${name}=${url}`).join(",");
    refuse(
      `--initial-cluster has ${pairs} but missing from --initial-advertise-peer-urls=${urls.join(",")}`,
    );
  }
  const extra = urls.filter((url) => !listed.includes(url));
  refuse(
    `--initial-advertise-peer-urls has ${extra.join(",")} but missing from --initial-cluster=${name}=${listed.join(",")}`,
  );
}

/** The URL with its host resolved to an address; unchanged if it does not resolve. */
async function resolved(url: string): Promise<string> {
  const host = /^https?:\/\/([^[\]:]+):/.exec(url)?.[1];
  if (host === undefined) return url;
  const found = await lookup(host).catch(() => undefined);
  return found === undefined ? url : url.replace(host, found.address);
}
