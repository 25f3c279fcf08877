/**
 * The peer port's endpoints besides Raft's own: the members of the cluster, this member's versions,
 * and, on the leader, requests about leases and learners that other members forward for their
 * clients (etcd: server/etcdserver/api/etcdhttp/peer.go).
 */

import type { HttpHandler, HttpRequest, HttpResponse } from "@quorate/host";
import { plainError } from "@quorate/host";
import type { Member } from "@quorate/member";
import { featureEndpoints, PROMOTE_PATH, SERVER_VERSION } from "@quorate/member";
import { EtcdError, idToHex, toUtf8 } from "@quorate/proto";
import { encodeMember } from "@quorate/store";
import { type VersionSource, versionEndpoint } from "./endpoints.ts";

/** The versions that a member reports. */
export function versionOf(member: Member): VersionSource {
  const clusterVersion = () => member.store.membership.clusterVersion ?? "not_decided";
  return { serverVersion: SERVER_VERSION, clusterVersion, storageVersion: SERVER_VERSION };
}

/** The endpoints of the peer port, by path. */
export function peerEndpoints(
  member: Member,
  version: VersionSource,
): ReadonlyMap<string, HttpHandler> {
  return new Map<string, HttpHandler>([
    ...member.leases.peerEndpoints(),
    ...member.corruption.peerEndpoints(),
    ...featureEndpoints(() => member.store),
    ["/version", versionEndpoint(version)],
    [
      "/downgrade/enabled",
      (request) => (request.method === "GET" ? downgradeAnswer(member) : notAllowed("GET")),
    ],
    [
      "/members",
      (request) => (request.method === "GET" ? membersAnswer(member) : notAllowed("GET")),
    ],
    [
      PROMOTE_PATH,
      (request) => (request.method === "POST" ? promote(member, request) : notAllowed("POST")),
    ],
  ]);
}

/** Whether the cluster is being downgraded, for members of etcd. */
function downgradeAnswer(member: Member): HttpResponse {
  const headers = { "content-type": "text/plain; charset=utf-8", ...clusterHeader(member) };
  return { status: 200, headers, body: String(member.store.membership.isDowngrading) };
}

function notAllowed(allow: string): HttpResponse {
  return plainError(405, "Method Not Allowed", { allow });
}

function clusterHeader(member: Member): { "x-etcd-cluster-id": string } {
  return { "x-etcd-cluster-id": idToHex(member.clusterId) };
}

function membersAnswer(member: Member): HttpResponse {
  const members = member.reconfiguration.members().map((one) => toUtf8(encodeMember(one)));
  return {
    status: 200,
    headers: { "content-type": "application/json", ...clusterHeader(member) },
    body: `[${members.join(",")}]\n`,
  };
}

/**
 * Promotes a learner for another member, if this one leads. What speaks against it goes back as
 * etcd's text.
 */
async function promote(member: Member, request: HttpRequest): Promise<HttpResponse> {
  const text = request.path.slice(PROMOTE_PATH.length);
  const headers = clusterHeader(member);
  const id = /^\d{1,20}$/.test(text) ? BigInt(text) : undefined;
  if (id === undefined || BigInt.asUintN(64, id) !== id)
    return plainError(404, `member ${text} not found in cluster`, headers);
  try {
    await member.reconfiguration.promoteAsLeader(id);
    return membersAnswer(member);
  } catch (error) {
    if (!(error instanceof EtcdError)) return plainError(500, "Internal Server Error", headers);
    const status = error.code === "MemberNotFound" ? 404 : NOT_FIT.has(error.code) ? 412 : 500;
    return plainError(status, error.message, headers);
  }
}

const NOT_FIT: ReadonlySet<string> = new Set(["MemberNotLearner", "MemberLearnerNotReady"]);
