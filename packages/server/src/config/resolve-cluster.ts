/** The members of a new cluster, and the URLs at which they reach this one. */
import {
  checked,
  contradiction,
  type Gates,
  type InitialCluster,
  inferLocalAddress,
  type MemberUrl,
  parseInitialCluster,
  parseUrl,
  urlsText,
} from "@quorate/member";
import type { OptionValues } from "./options.ts";
import type { ServerConfig } from "./server-config.ts";
import type { Settings } from "./settings.ts";

/**
 * Where a member listens on all IPv4 addresses and advertises only the default URL, the machine's
 * own address is advertised instead.
 */
export function withDefaultHost(
  advertised: readonly MemberUrl[],
  listen: readonly MemberUrl[],
  defaultText: string,
  defaultHost: (() => string | undefined) | undefined,
): readonly MemberUrl[] {
  const [own, ...others] = advertised;
  const isDefaultUrl = own?.text === defaultText && others.length === 0;
  if (!isDefaultUrl || listen[0]?.host !== "0.0.0.0") return advertised;
  const host = defaultHost?.();
  return host === undefined ? advertised : [parseUrl(`${own.scheme}://${host}:${listen[0].port}`)];
}

/** Empty where a discovery service or DNS names the members. Throws ConfigError. */
export function resolveCluster(
  settings: Settings,
  values: OptionValues,
  advertisePeerUrls: readonly MemberUrl[],
): InitialCluster {
  const hasDiscovery = values["discovery-srv"] !== "" || values["discovery-endpoints"].length > 0;
  const isGiven = settings.isSet("initial-cluster") && values["initial-cluster"] !== "";
  if (
    [isGiven, values["discovery-srv"] !== "", values["discovery-endpoints"].length > 0].filter(
      Boolean,
    ).length > 1
  ) {
    contradiction(
      'multiple discovery or bootstrap flags are set. Choose one of "initial-cluster", "discovery-endpoints" or "discovery-srv"',
    );
  }
  if ((values["discovery-token"] !== "") !== values["discovery-endpoints"].length > 0) {
    contradiction("both --discovery-token and --discovery-endpoints must be set");
  }
  if (hasDiscovery) return new Map();
  if (!settings.isSet("initial-cluster")) return new Map([[values.name, advertisePeerUrls]]);
  let cluster: InitialCluster = new Map();
  checked("error setting up initial cluster: --initial-cluster: ", "BadValue", () => {
    cluster = parseInitialCluster(values["initial-cluster"]);
  });
  return cluster;
}

/** As etcd's rafthttp.DefaultConnReadTimeout. */
const MIN_RAFT_READ_TIMEOUT_MS = 5000;

/**
 * The settings; warns of those that may lose data, or that cannot take effect.
 * @param advertised the peer URLs that other members dial
 */
export function resolvePeers(
  settings: Settings,
  values: OptionValues,
  gates: Gates,
  advertised: readonly MemberUrl[],
): Pick<ServerConfig, "electionTicks" | "raftReadTimeoutMs" | "localAddress"> {
  if (values["unsafe-no-fsync"]) {
    settings.warn("fsync is off: a crash of this machine loses acknowledged writes", {
      option: "unsafe-no-fsync",
    });
  }
  return {
    electionTicks: Math.floor(values["election-timeout"] / values["heartbeat-interval"]),
    raftReadTimeoutMs: Math.max(MIN_RAFT_READ_TIMEOUT_MS, values["raft-read-timeout"]),
    localAddress: localAddress(settings, gates, advertised),
  };
}

/** The address to dial peers from, if the feature gate asks for it. */
function localAddress(
  settings: Settings,
  gates: Gates,
  advertised: readonly MemberUrl[],
): string | undefined {
  if (gates.get("SetMemberLocalAddr") !== true) return undefined;
  const address = inferLocalAddress(advertised);
  if (address === undefined)
    settings.warn("unable to set a member local address due to lack of suitable local addresses", {
      "advertise-peer-urls": urlsText(advertised),
    });
  return address;
}
