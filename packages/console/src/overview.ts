/**
 * What the console shows of the members: each member reports of itself, and the member with the
 * page asks the others on their peer ports.
 *
 *     GET /members/console -> {"id":"8e9e05c52164694d","role":"leader",...}
 */
import { type HttpHandler, plainError } from "@quorate/host";
import { alarmName, type Member, QUORATE_VERSION, SERVER_VERSION } from "@quorate/member";
import { idToHex, toUtf8 } from "@quorate/proto";
import { SharedAnswer } from "@quorate/services";
import type { PeerCall } from "@quorate/transport";
import { COLUMNS, type Rates } from "./rates.ts";

/** Where a member reports of itself, on its peer port. */
export const MEMBER_REPORT_PATH = "/members/console";
/** A longer report is not taken. */
export const MAX_REPORT_BYTES: number = 64 * 1024;
/** A member that has not reported by then is shown as silent. */
const REPORT_TIMEOUT_MS = 2000;
const CERTIFICATE_ENDS = "quorate_tls_certificate_not_after_seconds";

/** What a report needs besides the member. */
export interface ReportParts {
  readonly rates: Rates;
  readonly startedMs: number;
  /** Free bytes of the disk with the data; undefined where that is not known. */
  readonly freeBytes: () => number | undefined;
}

type Report = Readonly<Record<string, unknown>>;

function roleOf(member: Member): string {
  if (member.isLearner) return "learner";
  return member.isLeader ? "leader" : member.leader === 0n ? "without leader" : "follower";
}

/** The member's report of itself. Ids are in hexadecimal, times in milliseconds since 1970. */
async function reportOf(member: Member, parts: ReportParts): Promise<Report> {
  const { registry } = member.metrics;
  await registry.refresh();
  const ends = registry.entries.find(({ name }) => name === CERTIFICATE_ENDS)?.metric;
  const series = ends !== undefined && "series" in ends ? [...ends.series.values()] : [];
  const certificates = series.flatMap(({ labels, metric }) =>
    "value" in metric ? [{ role: labels["role"], endsMs: metric.value * 1000 }] : [],
  );
  const { store, corruption } = member;
  const status = member.leadership.status();
  const newest = parts.rates.samples().findLast(({ values }) => values[SYNC] !== null);
  return {
    id: idToHex(member.id),
    role: roleOf(member),
    leader: member.leader === 0n ? "" : idToHex(member.leader),
    term: member.term,
    commitIndex: member.commitIndex,
    appliedIndex: member.appliedIndex,
    revision: store.mvcc.currentRevision,
    compactRevision: store.mvcc.compactRevision,
    keys: store.mvcc.keyCount,
    leases: store.lessor.count,
    watchers: member.watches.feed.watcherCount,
    sizeBytes: store.sizeBytes,
    inUseBytes: store.liveBytes,
    quotaBytes: member.config.quotaBackendBytes ?? 0,
    freeBytes: parts.freeBytes(),
    syncMs: newest?.values[SYNC] ?? null,
    version: QUORATE_VERSION,
    etcdVersion: SERVER_VERSION,
    clusterVersion: store.membership.clusterVersion ?? "",
    isHealing: corruption.isHealing,
    startedMs: parts.startedMs,
    nowMs: member.clock.wallMs(),
    certificates,
    progress: status.progress.map(({ id, match, state }) => ({ id: idToHex(id), match, state })),
  };
}

const SYNC = COLUMNS.indexOf("syncP99");

/** Reports to other members, as endpoint of the peer port. */
export function reportEndpoint(member: Member, parts: ReportParts): HttpHandler {
  const shared = new SharedAnswer(member.clock, () => reportOf(member, parts));
  return async ({ method }) => {
    if (method !== "GET") return plainError(405, "Method Not Allowed", { allow: "GET" });
    const body = JSON.stringify(await shared.ask());
    return { status: 200, headers: { "content-type": "application/json" }, body };
  };
}

/** The cluster as this member sees it. One answer is shared by all that ask meanwhile. */
export function overview(member: Member, parts: ReportParts, call: PeerCall): SharedAnswer<Report> {
  return new SharedAnswer(member.clock, async () => {
    const members = await Promise.all(
      member.reconfiguration
        .members()
        .map(async ({ id, name, peerUrls, clientUrls, isLearner }) => ({
          id: idToHex(id),
          name,
          peerUrls,
          clientUrls,
          isLearner,
          ...(id === member.id
            ? { report: await reportOf(member, parts) }
            : await askReport(call, peerUrls)),
        })),
    );
    const alarms = member.store.alarms
      .list()
      .map(({ memberId, type }) => ({ member: idToHex(memberId), alarm: alarmName(type) }));
    const isAuthOn = member.store.auth.isEnabled;
    return {
      self: idToHex(member.id),
      clusterId: idToHex(member.clusterId),
      isAuthOn,
      members,
      alarms,
    };
  });
}

/** The report of a member, or why there is none. Never rejects. */
async function askReport(
  call: PeerCall,
  urls: readonly string[],
): Promise<{ readonly report: unknown } | { readonly error: string }> {
  let error = "it has no peer URL";
  for (const url of urls) {
    try {
      const { status, body } = await call(url, MEMBER_REPORT_PATH, undefined, REPORT_TIMEOUT_MS);
      if (status === 404) return { error: "it runs without --console" };
      if (status !== 200 || body.length > MAX_REPORT_BYTES) error = `it answers with ${status}`;
      else return { report: JSON.parse(toUtf8(body)) };
    } catch (failure) {
      error = (failure as Error).message;
    }
  }
  return { error };
}
