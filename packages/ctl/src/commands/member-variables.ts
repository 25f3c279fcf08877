import type { Io } from "@quorate/cli";

import { fromUtf8, type MemberAddResponse, quoteBytes } from "@quorate/proto";

/** The environment variables to start an added member with, and their values. */
export function variablesOf(
  name: string,
  urls: readonly string[],
  added: Pick<MemberAddResponse, "member" | "members">,
): [variable: string, value: string][] {
  const pairs = added.members.flatMap((one) =>
    one.peerURLs.map((url) => `${one.ID === added.member?.ID ? name : one.name}=${url}`),
  );
  return [
    ["ETCD_NAME", name],
    ["ETCD_INITIAL_CLUSTER", pairs.join(",")],
    ["ETCD_INITIAL_ADVERTISE_PEER_URLS", urls.join(",")],
    ["ETCD_INITIAL_CLUSTER_STATE", "existing"],
  ];
}

/** Prints them. */
export function printVariables(
  io: Io,
  name: string,
  urls: readonly string[],
  added: Pick<MemberAddResponse, "member" | "members">,
): void {
  const lines = variablesOf(name, urls, added).map(
    ([variable, value]) => `${variable}=${quoteBytes(fromUtf8(value))}\n`,
  );
  io.stdout(`\n${lines.join("")}`);
}
