/** Settings of elections, of connections to peers, and of waiting for the disk. */
import type { Gates } from "@quorate/member";
import { inferLocalAddress, type MemberUrl, urlsText } from "@quorate/member";
import type { OptionValues } from "./options.ts";
import type { ServerConfig } from "./server-config.ts";
import type { Settings } from "./settings.ts";

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
