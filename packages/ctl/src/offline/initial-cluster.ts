/**
 * --initial-cluster and --initial-advertise-peer-urls as a member parses them at startup, with
 * etcd's texts.
 */
import { lookup } from "node:dns/promises";
import { Exit, ExitCode } from "@quorate/cli";
import { peerUrl } from "../connect/peer-url.ts";

function refuse(message: string): never {
  throw new Exit(ExitCode.error, message);
}

/** "name=url,name=url,...": the URLs of each member. Throws Exit. */
export function parseInitialCluster(text: string): Map<string, string[]> {
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
export async function checkLocalMember(
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
