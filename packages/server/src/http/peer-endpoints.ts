/**
 * What the peer port answers besides Raft's own requests: who belongs to the cluster, which versions this member speaks, and, on the
 * leader, what other members ask about leases for their clients.
 */
import { idToHex, toUtf8 } from "@quorate/proto";
import type { HttpHandler } from "@quorate/rpc";
import { encodeMember } from "@quorate/store";
import type { Member } from "../member/member.ts";
import { versionEndpoint } from "./endpoints.ts";
import { plainError } from "./health.ts";

/** The endpoints of the peer port, by path (etcd: server/etcdserver/api/etcdhttp/peer.go). */
export function peerEndpoints(member: Member, version: Parameters<typeof versionEndpoint>[0]): ReadonlyMap<string, HttpHandler> {
  return new Map<string, HttpHandler>([
    ...member.leases.peerEndpoints(),
    ["/version", versionEndpoint(version)],
    [
      "/members",
      (request) => {
        if (request.method !== "GET") return plainError(405, "Method Not Allowed", { allow: "GET" });
        const members = member.store.membership.members().map((one) => toUtf8(encodeMember(one)));
        return {
          status: 200,
          headers: { "content-type": "application/json", "x-etcd-cluster-id": idToHex(member.clusterId) },
          body: `[${members.join(",")}]\n`,
        };
      },
    ],
  ]);
}
