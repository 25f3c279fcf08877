/** The state of the cluster at one time, which the checks judge. */
import type { Member, StatusResponse } from "@quorate/proto";
import type { ShownCertificate } from "../observe/http.ts";
import type { MetricsText } from "../observe/metrics-text.ts";
import type { CommandMaker } from "./commands.ts";

/**
 * The bounds of the offset of a member's clock from this machine's, in milliseconds; positive is
 * ahead.
 */
export interface ClockOffset {
  readonly lowMs: number;
  readonly highMs: number;
}

/** The state of one member, or of an endpoint of an unknown member. */
export interface MemberView {
  /** The member's name or label. */
  readonly label: string;
  /** The endpoint used; empty for a member without client URLs. */
  readonly endpoint: string;
  /** The entry of the member list; undefined without a list. */
  readonly member: Member | undefined;
  readonly status: StatusResponse | undefined;
  /** Why there is no status. */
  readonly failure: string | undefined;
  readonly metrics: MetricsText | undefined;
  readonly clock: ClockOffset | undefined;
  /** Of the client port and of the peer port; undefined without TLS or without a response. */
  readonly certificate: ShownCertificate | undefined;
  readonly peerCertificate: ShownCertificate | undefined;
  /** A grpc-proxy, which answers for some member and lists itself in place of the members. */
  readonly isProxy?: boolean;
}

/** A certificate in a file of the client. */
export interface FileCertificate {
  /** The flag that names the file, such as "--cert". */
  readonly flag: string;
  readonly path: string;
  readonly subject: string;
  readonly validFromMs: number;
  readonly validToMs: number;
}

/** Measured in a local directory, in milliseconds. */
export interface DiskProbe {
  readonly path: string;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly syncs: number;
}

/** The limits of the checks. */
export interface Limits {
  readonly fsyncMs: number;
  readonly clockMs: number;
  readonly certificateDays: number;
}

export interface ClusterView {
  readonly members: readonly MemberView[];
  readonly files: readonly FileCertificate[];
  readonly disk: DiskProbe | undefined;
  /** This machine's clock. */
  readonly nowMs: number;
  readonly limits: Limits;
  /** An endpoint that responds, for the printed commands; "" if there is none. */
  readonly endpoint: string;
  readonly command: CommandMaker;
}

/**
 * The members of the view: not the endpoints of --endpoints that are of no member. Without a list
 * of members every endpoint may be one.
 */
export function membersOf(members: readonly MemberView[]): readonly MemberView[] {
  const direct = members.filter(({ isProxy }) => isProxy !== true);
  const listed = direct.filter(({ member }) => member !== undefined);
  return listed.length > 0 ? listed : direct;
}

/** The name of the member with this id, or the id. */
export function labelOf(view: ClusterView, id: bigint): string {
  const found = view.members.find(
    ({ member, status }) => (member?.ID ?? status?.header?.memberId) === id,
  );
  return found?.label ?? id.toString(16);
}

/** A quoratectl command line for this cluster, for `endpoint` or one that responds. */
export function ctl(view: ClusterView, words: string, endpoint = view.endpoint): string {
  return view.command(words, endpoint);
}

/** Whether a member runs Quorate, by its metrics. */
export function isOurs({ metrics }: MemberView): boolean {
  return metrics?.value("quorate_server_quota_used_ratio") !== undefined;
}

/**
 * The bytes that count against the quota: Quorate counts live records, etcd the whole file.
 */
export function quotaUse({
  status,
  metrics,
}: MemberView): { usedBytes: number; quotaBytes: number; share: number } | undefined {
  if (status === undefined) return undefined;
  const quotaBytes =
    status.dbSizeQuota > 0
      ? status.dbSizeQuota
      : (metrics?.value("etcd_server_quota_backend_bytes") ?? 0);
  if (!(quotaBytes > 0) || !Number.isFinite(quotaBytes)) return undefined;
  const ours = metrics?.value("quorate_server_quota_used_ratio");
  const usedBytes = ours === undefined ? status.dbSize : ours * quotaBytes;
  return { usedBytes, quotaBytes, share: usedBytes / quotaBytes };
}
