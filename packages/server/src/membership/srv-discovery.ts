/**
 * The members of a cluster by SRV records (etcd: --discovery-srv, client/pkg/srv).
 *
 *     _etcd-server-ssl[-NAME]._tcp.DOMAIN   https://host:port of each member
 *     _etcd-server[-NAME]._tcp.DOMAIN       http://host:port
 *
 * Records do not name members: the one that points to this member's own
 * --initial-advertise-peer-urls gets its name, the others get numbers.
 */
import type { Logger, Names } from "@quorate/host";
import {
  ConfigError,
  type InitialCluster,
  initialClusterText,
  type MemberConfig,
  type MemberUrl,
  parseUrl,
} from "../config/index.ts";

/**
 * Records of one service; a cluster has a handful of members, and each record costs a question for
 * its address.
 */
const MAX_SRV_RECORDS = 64;
/**
 * What may stand in a URL as a host: DNS allows any byte in a name. A target of "." says that there
 * is no such service (RFC 2782).
 */
const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;
const ADDRESS = /^[0-9a-fA-F:.]+$/;
const MAX_NAME_CHARS = 253;

function isHost(text: string): boolean {
  if (text.includes(":")) return ADDRESS.test(text);
  return text.length <= MAX_NAME_CHARS && NAME.test(text) && !/[.-]$/.test(text);
}

export interface DiscoveryDeps {
  readonly names: Names;
  readonly logger: Logger;
}

/** Where the records are: the domain, and what --discovery-srv-name adds to the service. */
export interface SrvDomain {
  readonly domain: string;
  readonly serviceName: string;
}

async function addressOf(url: MemberUrl, names: Names): Promise<string> {
  try {
    return await names.resolveHost(url.host);
  } catch (error) {
    throw new ConfigError(
      "Contradiction",
      `--initial-advertise-peer-urls: cannot resolve the host of ${url.text}, by which this member is found among the SRV records: ` +
        (error as Error).message,
    );
  }
}

/**
 * The members that the records of a domain name, by name. Throws ConfigError where they name none,
 * or not this member.
 */
export async function discoverBySrv(
  config: MemberConfig,
  where: SrvDomain,
  deps: DiscoveryDeps,
): Promise<InitialCluster> {
  const suffix = where.serviceName === "" ? "" : `-${where.serviceName}`;
  const own = new Map<string, MemberUrl>();
  for (const url of config.advertisePeerUrls)
    own.set(`${await addressOf(url, deps.names)}:${url.port}`, url);
  const cluster = new Map<string, MemberUrl[]>();
  const reasons: string[] = [];
  let numbered = 0;
  for (const [scheme, service] of [
    ["https", `etcd-server-ssl${suffix}`],
    ["http", `etcd-server${suffix}`],
  ] as const) {
    const targets = await deps.names.lookupSrv(service, where.domain).catch((error: Error) => {
      reasons.push(`error querying DNS SRV records for _${service} ${error.message}`);
      return [];
    });
    if (targets.length > MAX_SRV_RECORDS) {
      throw new ConfigError(
        "Contradiction",
        `_${service}._tcp.${where.domain} has ${targets.length} SRV records, more than the ${MAX_SRV_RECORDS} that a cluster may have`,
      );
    }
    for (const target of targets) {
      if (!isHost(target.host) || target.port === 0) {
        reasons.push(
          `${JSON.stringify(`${target.host}:${target.port}`)} from DNS for ${service} is no host and port`,
        );
        continue;
      }
      const host = target.host.includes(":") ? `[${target.host}]` : target.host;
      const url = parseUrl(`${scheme}://${host}:${target.port}`);
      let address: string;
      try {
        address = await deps.names.resolveHost(target.host);
      } catch (error) {
        // As in etcd, a member whose host is not known yet is left out.
        reasons.push(`${url.text} from DNS for ${service}: ${(error as Error).message}`);
        continue;
      }
      const mine = own.get(`${address}:${target.port}`);
      if (mine !== undefined && mine.scheme !== scheme) {
        reasons.push(
          `bootstrap at ${url.text} from DNS for ${service} has scheme mismatch with expected peer ${mine.text}`,
        );
        continue;
      }
      if (String(numbered) === config.name) numbered++;
      const name = mine === undefined ? String(numbered++) : config.name;
      cluster.set(name, [...(cluster.get(name) ?? []), url]);
    }
  }
  if (cluster.size === 0)
    throw new ConfigError(
      "Contradiction",
      `no members by --discovery-srv=${where.domain}: ${reasons.join("; ")}`,
    );
  if (!cluster.has(config.name)) {
    const trouble = reasons.length === 0 ? "" : ` (${reasons.join("; ")})`;
    throw new ConfigError(
      "Contradiction",
      `cannot find local etcd member ${JSON.stringify(config.name)} in SRV records of ${where.domain}: they name ` +
        `${initialClusterText(cluster)}, and none of these is --initial-advertise-peer-urls${trouble}`,
    );
  }
  deps.logger.info("got bootstrap from DNS for etcd-server", {
    "discovery-srv": where.domain,
    "found-cluster": initialClusterText(cluster),
  });
  return cluster;
}
