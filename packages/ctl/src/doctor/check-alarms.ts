/** Raised alarms, and how to clear them. */
import { defined, idToHex } from "@quorate/proto";
import { type Finding, problem } from "./finding.ts";
import { type ClusterView, ctl, isOurs, labelOf, type MemberView, quotaUse } from "./view.ts";

/**
 * An alarm in the errors of a member's status, which works without a leader too.
 */
const ALARM = /^(?:memberID:(\d+)\s+)?alarm:(\w+)/;
/** Below this share of the quota the alarm NOSPACE is disarmed. */
const FREE_AGAIN_SHARE = 0.8;

export function checkAlarms(view: ClusterView): Finding[] {
  const raised = new Set(
    view.members.flatMap(({ status }) => status?.errors ?? []).filter((error) => ALARM.test(error)),
  );
  return [...raised].map((text): Finding => {
    const [, id = "0", kind] = defined(ALARM.exec(text), "a match");
    return kind === "NOSPACE"
      ? noSpace(view, BigInt(id))
      : different(view, BigInt(id), kind ?? "?");
  });
}

/**
 * Only the steps that are needed: history may be compacted already, Quorate needs no
 * defragmentation, and the alarm may be disarmed automatically.
 */
function noSpace(view: ClusterView, id: bigint): Finding {
  const member = memberOf(view, id);
  const share = member === undefined ? undefined : quotaUse(member)?.share;
  const endsItself = view.members.some(
    ({ metrics }) => metrics?.value("quorate_server_quota_auto_disarm") === 1,
  );
  const hasSpace = share !== undefined && share < FREE_AGAIN_SHARE;
  const compaction = hasSpace ? [] : compactionOf(view);
  const isFullOfLiveData = !hasSpace && compaction.length === 0;
  // etcd's quota counts the file, which only defragmentation makes smaller.
  const defrag =
    hasSpace || view.members.every((one) => one.status === undefined || isOurs(one))
      ? []
      : [ctl(view, "defrag --cluster --command-timeout=10m")];
  const disarm = endsItself ? [] : [ctl(view, "alarm disarm")];
  const steps = [
    ...(hasSpace ? ["space is free again"] : []),
    ...(compaction.length > 0
      ? ["compact the history (older revisions cannot be read any more)"]
      : []),
    ...(isFullOfLiveData
      ? [
          "there is no history to compact: delete keys and compact again, or raise --quota-backend-bytes on all members",
        ]
      : []),
    ...(!isFullOfLiveData && defrag.length > 0 ? ["defragment the members"] : []),
    endsItself
      ? `the alarm is disarmed automatically once less than ${FREE_AGAIN_SHARE * 100}% of the quota is used`
      : "disarm the alarm",
  ];
  const run = isFullOfLiveData ? [] : [...compaction, ...defrag, ...disarm];
  return problem("alarm", labelOf(view, id), {
    seen: "the alarm NOSPACE: its store is full, and the cluster refuses puts",
    right: "a store with free space",
    next: `${steps.join("; ")}${run.length > 0 ? ":" : ""}`,
    run,
  });
}

function different(view: ClusterView, id: bigint, kind: string): Finding {
  const heals = memberOf(view, id)?.metrics?.value("quorate_server_self_heal") === 1;
  const label = labelOf(view, id);
  const isCorrupt = kind === "CORRUPT";
  return problem("alarm", id === 0n ? "cluster" : label, {
    seen: `the alarm ${isCorrupt ? "CORRUPT: its data differs from that of the others, and the cluster refuses changes" : kind}`,
    right: "all members have the same data",
    next: heals
      ? "it fetches the leader's store automatically, which disarms the alarm; the hashes of all:"
      : id === 0n
        ? "no majority agrees on the data: see docs/operate/operations.md, Members that differ " +
          "(alarm disarm makes them compare again); the hashes:"
        : `compare; then replace it (member replace ${idToHex(id)} NEW-PEER-URL, see docs/operate/operations.md), and disarm the alarm ` +
          "(alarm disarm); the hashes of all:",
    run: [ctl(view, "endpoint hashkv --cluster -w table")],
  });
}

function memberOf(view: ClusterView, id: bigint): MemberView | undefined {
  return view.members.find(({ member, status }) => (member?.ID ?? status?.header?.memberId) === id);
}

/**
 * The command that compacts up to the present revision; undefined if there is nothing to compact.
 */
export function compactionOf(view: ClusterView): string[] {
  const revision = Math.max(0, ...view.members.map(({ status }) => status?.header?.revision ?? 0));
  const compacted = Math.max(
    0,
    ...view.members.map(
      ({ metrics }) => metrics?.value("etcd_debugging_mvcc_compact_revision") ?? 0,
    ),
  );
  return revision > 1 && revision > compacted
    ? [ctl(view, `compaction --physical ${revision}`)]
    : [];
}
