/** The members of a new cluster that are not in the configuration: by DNS, or by a token. */
import type { Clock, Logger, Names } from "@quorate/host";
import { memberId } from "@quorate/store";
import type { DiscoveryConfig } from "../config/discovery-config.ts";
import { ConfigError } from "../config/errors.ts";
import type { MemberConfig } from "../config/member-config.ts";
import type { InitialCluster } from "../config/url.ts";
import { discoverBySrv } from "./srv-discovery.ts";
import { discoverByToken, type OpenRegistry } from "./token-discovery.ts";

/** What discovery needs of the process. */
export interface DiscoveredDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** For --discovery-srv. */
  readonly names?: Names | undefined;
  /** For --discovery-endpoints. */
  readonly openRegistry?: OpenRegistry | undefined;
}

/**
 * The configuration with the members that are found, if it has them found. Rejects with ConfigError
 * or DiscoveryError.
 */
export async function discovered(
  config: MemberConfig,
  deps: DiscoveredDeps,
): Promise<MemberConfig> {
  const { discovery, discoverySrv } = config;
  if (discovery !== undefined && config.isNewCluster)
    return { ...config, initialCluster: await byToken(config, discovery, deps) };
  if (discoverySrv === undefined) return config;
  const { names, logger } = deps;
  if (names === undefined)
    throw new ConfigError("Contradiction", "this member has no DNS resolver for SRV records");
  return {
    ...config,
    initialCluster: await discoverBySrv(config, discoverySrv, { names, logger }),
  };
}

function byToken(
  config: MemberConfig,
  where: DiscoveryConfig,
  { openRegistry: open, clock, logger }: DiscoveredDeps,
): Promise<InitialCluster> {
  if (open === undefined)
    throw new ConfigError("Contradiction", "this member has no client for --discovery-endpoints");
  const urls = config.advertisePeerUrls.map((url) => url.text);
  const id = memberId(urls, config.initialClusterToken);
  return discoverByToken(config, where, id, { open, clock, logger });
}
