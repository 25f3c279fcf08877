/**
 * How members introduce themselves: every request between them names its sender, its receiver,
 * which cluster, and in which versions. The answer says the same of the other side.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { idFromHex, idToHex } from "@quorate/proto";
import type { Standing } from "../src/member-directory.ts";
import { refuseVersions } from "../src/version.ts";
import type { RefusalReason, ResolvedOptions } from "./options.ts";

export const STREAM_PATH = "/raft/stream/";
export const SNAPSHOT_PATH = "/raft/snapshot";
/** A member comes for a snapshot whose sender cannot dial it. */
export const FETCH_PATH = "/raft/snapshot/fetch";

/** The way messages are framed; members that frame them otherwise must not talk. */
const PROTOCOL = "1";

const Name = {
  protocol: "x-quorate-protocol",
  clusterId: "x-quorate-cluster-id",
  from: "x-quorate-from",
  to: "x-quorate-to",
  serverVersion: "x-quorate-server-version",
  minClusterVersion: "x-quorate-min-cluster-version",
  peerUrls: "x-quorate-peer-urls",
} as const;

/** The names of the same in etcd's peer protocol. */
const EtcdName = {
  clusterId: "x-etcd-cluster-id",
  from: "x-server-from",
  to: "x-raft-to",
  serverVersion: "x-server-version",
  minClusterVersion: "x-min-cluster-version",
  peerUrls: "x-peerurls",
} as const;

/** What a request says of its sender. */
export interface Introduction {
  readonly from: bigint;
  readonly urls: readonly string[];
}

/** Why a request is turned away. The text goes back to the sender. */
export interface Refusal {
  readonly status: number;
  readonly reason: RefusalReason;
  readonly text: string;
  /** Who the sender says it is; 0n if it does not say. */
  readonly from: bigint;
}

/** The texts by which a sender knows why it was turned away. */
export const RefusalText = {
  clusterId: "cluster ID mismatch",
  version: "incompatible version",
  to: "to field mismatch",
  removed: "removed member",
  certificate: "the certificate names no host of the member's peer URLs",
  unknown: "error sender not found",
} as const;

/** What an operator compares when cluster ids differ, for the log. */
export const CLUSTER_ID_ADVICE: string =
  "cluster ids come from --initial-cluster-token and --initial-cluster at the first start: compare both with the other members', " +
  "and that the peer URL is that of a member; a member that was started with others has to be started with an empty data directory";

/** Headers of a request to the member `to`. */
export function requestHeaders(
  options: ResolvedOptions,
  to: bigint,
  path: string,
): OutgoingHttpHeaders {
  return {
    ":method": "POST",
    ":path": path,
    "content-type": "application/octet-stream",
    ...answerHeaders(options),
    [Name.to]: idToHex(to),
    [Name.peerUrls]: options.localUrls.join(","),
  };
}

/** What an answer says of this member. */
export function answerHeaders(options: ResolvedOptions): OutgoingHttpHeaders {
  return {
    [Name.protocol]: PROTOCOL,
    [Name.clusterId]: idToHex(options.clusterId),
    [Name.from]: idToHex(options.selfId),
    [Name.serverVersion]: options.serverVersion,
    [Name.minClusterVersion]: options.minClusterVersion,
  };
}

/**
 * Headers of a request to a member of etcd. That the sender speaks Quorate's own protocol stands
 * there too: a member of Quorate turns the request away, and is then spoken to in that.
 * @param to the receiver, where the request names it
 */
export function etcdRequestHeaders(
  options: ResolvedOptions,
  to: bigint | undefined,
): OutgoingHttpHeaders {
  return {
    ...etcdAnswerHeaders(options),
    [EtcdName.from]: idToHex(options.selfId),
    [EtcdName.minClusterVersion]: options.minClusterVersion,
    [EtcdName.peerUrls]: options.localUrls.join(","),
    ...(to === undefined ? {} : { [EtcdName.to]: idToHex(to) }),
  };
}

/** What an answer in etcd's peer protocol says of this member. */
export function etcdAnswerHeaders(options: ResolvedOptions): OutgoingHttpHeaders {
  return {
    [EtcdName.clusterId]: idToHex(options.clusterId),
    [EtcdName.serverVersion]: options.serverVersion,
    ...(options.isEtcd ? {} : { [Name.protocol]: PROTOCOL }),
  };
}

/** Whether the other side of a request in etcd's protocol speaks Quorate's own. */
export function speaksQuorate(options: ResolvedOptions, headers: IncomingHttpHeaders): boolean {
  return !options.isEtcd && headers[Name.protocol] !== undefined;
}

/** The cluster that the other side says it belongs to, for logs. */
export function remoteClusterId(headers: IncomingHttpHeaders): string {
  return text(headers, Name.clusterId) || text(headers, EtcdName.clusterId);
}

/** The version that the other side says it has, for logs. */
export function remoteVersion(headers: IncomingHttpHeaders): string {
  return text(headers, Name.serverVersion) || text(headers, EtcdName.serverVersion);
}

/** What a request has to fit. */
interface RequestChecks {
  readonly options: ResolvedOptions;
  takesEtcd(): boolean;
  isRemoved(id: bigint): boolean;
  standingOf(id: bigint): Standing;
}

/** Who sends a request, or why it is not taken. */
export function checkRequest(
  checks: RequestChecks,
  headers: IncomingHttpHeaders,
): Introduction | Refusal {
  const from = idFromHex(text(headers, Name.from));
  if (from !== undefined && text(headers, Name.protocol) !== PROTOCOL)
    return { status: 412, reason: "version", text: RefusalText.version, from };
  return checkIntroduction(checks, headers, Name);
}

/**
 * Who sends a request in etcd's protocol, or why it is not taken. Its receiver is compared where
 * it is named: the requests of streams do.
 */
export function checkEtcdRequest(
  checks: RequestChecks,
  headers: IncomingHttpHeaders,
): Introduction | Refusal {
  if (speaksQuorate(checks.options, headers)) {
    const from = idFromHex(text(headers, EtcdName.from)) ?? 0n;
    return { status: 412, reason: "asking", text: RefusalText.version, from };
  }
  if (!checks.takesEtcd()) {
    const from = idFromHex(text(headers, EtcdName.from)) ?? 0n;
    return { status: 412, reason: "version", text: RefusalText.version, from };
  }
  const to = text(headers, EtcdName.to) || idToHex(checks.options.selfId);
  return checkIntroduction(checks, { ...headers, [EtcdName.to]: to }, EtcdName);
}

function checkIntroduction(
  { options, isRemoved, standingOf }: RequestChecks,
  headers: IncomingHttpHeaders,
  names: typeof EtcdName | typeof Name,
): Introduction | Refusal {
  const from = idFromHex(text(headers, names.from));
  const refusal = (status: number, reason: RefusalReason, words: string): Refusal => ({
    status,
    reason,
    text: words,
    from: from ?? 0n,
  });
  if (from === undefined) return refusal(400, "request", "invalid from");
  const clusterId = idFromHex(text(headers, names.clusterId));
  if (clusterId !== options.clusterId) return refusal(412, "cluster-id", RefusalText.clusterId);
  const local = { server: options.serverVersion, minCluster: options.minClusterVersion };
  const remote = {
    server: text(headers, names.serverVersion),
    minCluster: text(headers, names.minClusterVersion),
  };
  if (refuseVersions(local, remote) !== undefined)
    return refusal(412, "version", RefusalText.version);
  if (idFromHex(text(headers, names.to)) !== options.selfId)
    return refusal(412, "to", RefusalText.to);
  if (isRemoved(from)) return refusal(410, "removed", RefusalText.removed);
  const standing = standingOf(from);
  if (standing === "certificate") return refusal(403, "certificate", RefusalText.certificate);
  if (standing !== "member") return refusal(404, standing, RefusalText.unknown);
  const urls = text(headers, names.peerUrls);
  return { from, urls: urls === "" ? [] : urls.split(",") };
}

function text(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name];
  return typeof value === "string" ? value : "";
}
