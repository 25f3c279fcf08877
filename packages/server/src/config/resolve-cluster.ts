/** The members of a new cluster, and the URLs at which they reach this one. */
import {
  checked,
  contradiction,
  type InitialCluster,
  type MemberUrl,
  parseInitialCluster,
  parseUrl,
} from "@quorate/member";
import type { OptionValues } from "./options.ts";
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
  const isDefaultUrl = advertised.length === 1 && advertised[0].text === defaultText;
  if (!isDefaultUrl || listen[0]?.host !== "0.0.0.0") return advertised;
  const host = defaultHost?.();
  return host === undefined
    ? advertised
    : [parseUrl(`${advertised[0].scheme}://${host}:${listen[0].port}`)];
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
