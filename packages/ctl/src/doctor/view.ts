/** The cluster as the doctor saw it at one time. The checks read it and do nothing else. */
import type { Member, StatusResponse } from "@quorate/proto";
import type { ShownCertificate } from "../observe/http.ts";
import type { MetricsText } from "../observe/metrics-text.ts";
import type { CommandMaker } from "./commands.ts";

/**
 * How far a member's clock is ahead of this machine's, in milliseconds: somewhere between the two.
 */
export interface ClockOffset {
  readonly lowMs: number;
  readonly highMs: number;
}

/** What was learnt of one member, or of an endpoint that no member is known for. */
export interface MemberView {
  /** The member's name, or what stands for it. */
  readonly label: string;
  /** Where it was asked; empty for a member that has published no client URL. */
  readonly endpoint: string;
  /** As the cluster lists it; undefined where the list could not be had. */
  readonly member: Member | undefined;
  readonly status: StatusResponse | undefined;
  /** Why there is no status. */
  readonly failure: string | undefined;
  readonly metrics: MetricsText | undefined;
  readonly clock: ClockOffset | undefined;
  /** On the client port, and on the peer port; undefined without TLS or without an answer. */
  readonly certificate: ShownCertificate | undefined;
  readonly peerCertificate: ShownCertificate | undefined;
}

/** A certificate in a file of the client's. */
export interface FileCertificate {
  /** The flag that names the file, such as "--cert". */
  readonly flag: string;
  readonly path: string;
  readonly subject: string;
  readonly validFromMs: number;
  readonly validToMs: number;
}

/** Measured in a folder of this machine, in milliseconds. */
export interface DiskProbe {
  readonly path: string;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly syncs: number;
}

/** From where on something is found wrong. */
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
  /** One endpoint that answers, for the commands that are advised; "" if there is none. */
  readonly endpoint: string;
  readonly command: CommandMaker;
}

/** The name of the member with an id, or the id. */
export function labelOf(view: ClusterView, id: bigint): string {
  const found = view.members.find(
    ({ member, status }) => (member?.ID ?? status?.header?.memberId) === id,
  );
  return found?.label ?? id.toString(16);
}

/** A command of quoratectl's for this cluster, asked at `endpoint` or where somebody answers. */
export function ctl(view: ClusterView, words: string, endpoint = view.endpoint): string {
  return view.command(words, endpoint);
}

/** Whether a member is one of Quorate's, as its metrics show. */
export function isOurs({ metrics }: MemberView): boolean {
  return metrics?.value("quorate_server_quota_used_ratio") !== undefined;
}

/**
 * What counts against the quota: live records at a member of ours, the whole file at one of etcd's.
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
