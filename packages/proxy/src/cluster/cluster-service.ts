/** etcdserverpb.Cluster: a client that lists members gets the proxies, all else goes through. */
import { ClusterService as Descriptor, MemberListResponse } from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";
import { passUnary } from "../upstream/pass-through.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { EndpointRecord } from "./endpoint-records.ts";

export interface ClusterOptions {
  /** --advertise-client-url; empty to list the members themselves. */
  readonly advertised: string;
  readonly hostname: string;
  /** The registered proxies; none if the proxy is not registered. */
  readonly proxies: () => readonly EndpointRecord[];
}

/** The methods, by path (etcd: server/proxy/grpcproxy/cluster.go). */
export function clusterMethods(
  upstream: Upstream,
  { advertised, hostname, proxies }: ClusterOptions,
): Map<string, UnaryHandler> {
  const { MemberAdd, MemberRemove, MemberUpdate, MemberPromote, MemberList } = Descriptor.methods;
  const listed: UnaryHandler = () => {
    const found = proxies();
    const records = found.length > 0 ? found : [{ name: hostname, address: advertised }];
    const members = records.map(({ name, address }) => ({
      ID: 0n,
      name,
      clientURLs: [address],
      peerURLs: [],
      isLearner: false,
    }));
    return MemberListResponse.encode({ members });
  };
  return new Map<string, UnaryHandler>([
    ...[MemberAdd, MemberRemove, MemberUpdate, MemberPromote].map(
      ({ path }) => [path, passUnary(upstream, path, false)] as const,
    ),
    [MemberList.path, advertised === "" ? passUnary(upstream, MemberList.path, true) : listed],
  ]);
}
