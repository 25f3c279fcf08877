/**
 * Checks of a member's first start, when there is no log yet: does the configuration name this
 * member, under the URLs it advertises?
 */
import { quoteText } from "@quorate/proto";
import { contradiction } from "./errors.ts";
import type { MemberConfig } from "./member-config.ts";
import { initialClusterText, type MemberUrl, sameUrl, urlsText } from "./url.ts";

/** Finds a host's address; rejects if there is none. */
export type ResolveHost = (host: string) => Promise<string>;

function localUrls(config: MemberConfig): readonly MemberUrl[] {
  const urls = config.initialCluster.get(config.name);
  const names = [...config.initialCluster.keys()].join(", ");
  const right = `--name must be one of those in --initial-cluster: ${names}`;
  return (
    urls ??
    contradiction(
      `couldn't find local name ${quoteText(config.name)} in the initial cluster configuration; ${right}`,
    )
  );
}

function checkDuplicates(config: MemberConfig): void {
  const seen = new Set<string>();
  for (const urls of config.initialCluster.values()) {
    for (const url of urls) {
      if (seen.has(url.text))
        contradiction(
          `initial cluster ${initialClusterText(config.initialCluster)} has duplicate url ${url.text}`,
        );
      seen.add(url.text);
    }
  }
}

async function resolved(url: MemberUrl, resolveHost: ResolveHost): Promise<MemberUrl> {
  if (url.path !== "" || url.host === "localhost") return url;
  return { ...url, host: await resolveHost(url.host) };
}

/**
 * Whether both lists name the same places in any order; names are resolved only if the texts
 * alone do not show it.
 */
async function samePlaces(
  a: readonly MemberUrl[],
  b: readonly MemberUrl[],
  resolveHost: ResolveHost | undefined,
): Promise<boolean> {
  if (a.length !== b.length) return false;
  const matches = (x: readonly MemberUrl[], y: readonly MemberUrl[]): boolean =>
    x.every((url) => y.some((other) => sameUrl(url, other))) &&
    y.every((url) => x.some((other) => sameUrl(url, other)));
  if (matches(a, b)) return true;
  if (resolveHost === undefined) return false;
  const resolve = (urls: readonly MemberUrl[]): Promise<MemberUrl[]> =>
    Promise.all(urls.map((url) => resolved(url, resolveHost)));
  return matches(...(await Promise.all([resolve(a), resolve(b)])));
}

/**
 * Checks the first start of a member of a new cluster. Throws ConfigError with etcd's texts.
 * @param resolveHost used only if --initial-cluster and --initial-advertise-peer-urls differ as
 * texts
 */
export async function verifyBootstrap(
  config: MemberConfig,
  resolveHost?: ResolveHost,
): Promise<void> {
  const inCluster = localUrls(config);
  checkDuplicates(config);
  let reason = "";
  try {
    if (await samePlaces(config.advertisePeerUrls, inCluster, resolveHost)) return;
  } catch (error) {
    reason = ` (${(error as Error).message})`;
  }
  const advertised = urlsText(config.advertisePeerUrls);
  const missing = inCluster.filter(
    (url) => !config.advertisePeerUrls.some((other) => other.text === url.text),
  );
  if (missing.length > 0) {
    const pairs = missing.map((url) => `${config.name}=${url.text}`).join(",");
    contradiction(
      `--initial-cluster has ${pairs} but missing from --initial-advertise-peer-urls=${advertised}${reason}`,
    );
  }
  const local = initialClusterText(new Map([[config.name, inCluster]]));
  const extra = config.advertisePeerUrls.filter(
    (url) => !inCluster.some((other) => other.text === url.text),
  );
  contradiction(
    `--initial-advertise-peer-urls has ${urlsText(extra)} but missing from --initial-cluster=${local}${reason}`,
  );
}

/**
 * Checks the first start of a member that joins a cluster, whose member list its peer URLs are
 * compared with later. Throws ConfigError.
 */
export function verifyJoin(config: MemberConfig): void {
  localUrls(config);
  checkDuplicates(config);
}
