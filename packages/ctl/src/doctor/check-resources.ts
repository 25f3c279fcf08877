/** Checks clocks, disks, space and limits of single members. */
import { humanBytes } from "@quorate/cli";
import { countAbove, countOf, quantile } from "../observe/metrics-text.ts";
import { compactionOf } from "./check-alarms.ts";
import { type Finding, finding, warning } from "./finding.ts";
import { type ClusterView, ctl, quotaUse } from "./view.ts";

/**
 * Fewer syncs than this are no sample of a disk, and fewer slow ones no problem: any disk has a bad
 * moment.
 */
const MIN_SYNCS = 50;
const MIN_SLOW_SYNCS = 5;
/**
 * Unused space that LevelDB needs for itself, which does not count as wasted.
 */
const FREE_SLACK_BYTES = 64 * 1024 * 1024;
/** Open files as a share of the limit. */
const MAX_FILES_SHARE = 0.8;

const shownMs = (ms: number): string =>
  Math.abs(ms) >= 10_000 ? `${(ms / 1000).toFixed(0)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;

/** Clocks that differ by more than the limit, whatever the request's latency was. */
export function checkClocks(view: ClusterView): Finding[] {
  const known = view.members.flatMap(({ label, clock }) =>
    clock === undefined ? [] : [{ label, clock }],
  );
  const off = known.filter(({ clock }) => distance(clock) > view.limits.clockMs);
  const right = `clocks within ${shownMs(view.limits.clockMs)}: certificates, logs and backups depend on them`;
  // If all members differ in the same direction, this machine's clock is wrong.
  const signs = new Set(off.map(({ clock }) => Math.sign(clock.lowMs)));
  if (known.length > 1 && off.length === known.length && signs.size === 1) {
    const leastMs = Math.min(...off.map(({ clock }) => distance(clock)));
    return [
      warning("clock", "client", {
        seen: `this machine's clock is ${shownMs(leastMs)} or more ${signs.has(1) ? "behind" : "ahead of"} those of all members`,
        right,
        next: "check the time synchronisation of this machine (chronyc tracking has details with chrony):",
        run: ["timedatectl status"],
      }),
    ];
  }
  return off.map(({ label, clock }) =>
    warning("clock", label, {
      seen: `its clock is at least ${shownMs(distance(clock))} ${clock.lowMs > 0 ? "ahead of" : "behind"} this machine's`,
      right,
      next: "on its machine: timedatectl status; chronyc tracking",
    }),
  );
}

/** The smallest possible distance of the offset from zero. */
function distance({ lowMs, highMs }: { lowMs: number; highMs: number }): number {
  return Math.max(0, lowMs, -highMs);
}

/** Disks with slow syncs: every write waits for one. */
export function checkDisks(view: ClusterView): Finding[] {
  const { fsyncMs } = view.limits;
  const right = `99% of syncs within ${shownMs(fsyncMs)} (10 ms on a good disk)`;
  const findings: Finding[] = view.members.flatMap(({ label, metrics, endpoint }): Finding[] => {
    const histogram = metrics?.histogram("etcd_disk_wal_fsync_duration_seconds");
    if (histogram === undefined || countOf(histogram) < MIN_SYNCS) return [];
    const p99Ms = (quantile(histogram, 0.99) ?? 0) * 1000;
    if (p99Ms <= fsyncMs || countAbove(histogram, fsyncMs / 1000) < MIN_SLOW_SYNCS) return [];
    return [
      finding(p99Ms > 5 * fsyncMs ? "error" : "warning", "disk", label, {
        seen: `1% of its log's syncs took longer than ${shownMs(p99Ms)} since it started (of ${countOf(histogram)})`,
        right,
        next:
          "on its machine, quoratectl doctor --probe-dir=DATA-DIR distinguishes the disk from other load; " +
          "move the log to a disk of its own " +
          "(--wal-dir); the present state:",
        run: [ctl(view, "top --once", endpoint)],
      }),
    ];
  });
  const { disk } = view;
  if (disk !== undefined && disk.p99Ms > fsyncMs) {
    findings.push(
      warning("disk", "client", {
        seen: `${disk.path}: half of ${disk.syncs} synced writes took ${shownMs(disk.p50Ms)}, 1% longer than ${shownMs(disk.p99Ms)}`,
        right,
        next: `find what else uses it (iostat -x 1), or use another disk than that of ${disk.path}`,
      }),
    );
  }
  return findings;
}

/** Stores near their quota. */
export function checkQuota(view: ClusterView): Finding[] {
  return view.members.flatMap((one): Finding[] => {
    const { label } = one;
    const use = quotaUse(one);
    if (use === undefined || use.share < 0.8) return [];
    const percent = Math.floor(use.share * 100);
    const compaction = compactionOf(view);
    return [
      finding(percent >= 90 ? "error" : "warning", "quota", label, {
        seen: `${percent}% of the quota is used: ${humanBytes(use.usedBytes)} of ${humanBytes(use.quotaBytes)}`,
        right: "below 80%: at 100% the cluster refuses puts",
        next:
          compaction.length > 0
            ? "raise --quota-backend-bytes on all members; or compact, and automate that with --auto-compaction-retention:"
            : "there is no history to compact: delete keys, or raise --quota-backend-bytes on all members",
        run: compaction,
      }),
    ];
  });
}

/** Stores much larger on disk than their content. */
export function checkSpace(view: ClusterView): Finding[] {
  return view.members.flatMap(({ label, endpoint, status }): Finding[] => {
    if (status === undefined || status.dbSizeInUse === 0) return [];
    const freeBytes = status.dbSize - status.dbSizeInUse;
    if (freeBytes < FREE_SLACK_BYTES || freeBytes < status.dbSize / 2) return [];
    return [
      warning("space", label, {
        seen: `its store takes ${humanBytes(status.dbSize)} on the disk, for ${humanBytes(status.dbSizeInUse)} in use`,
        right: "less than half of it unused",
        next: "defragment it; it serves meanwhile:",
        run: [ctl(view, "defrag --command-timeout=10m", endpoint)],
      }),
    ];
  });
}

/** Members near their limit of open files. */
export function checkFiles(view: ClusterView): Finding[] {
  return view.members.flatMap(({ label, metrics }): Finding[] => {
    const open = metrics?.value("process_open_fds");
    const limit = metrics?.value("process_max_fds");
    if (open === undefined || limit === undefined || limit <= 0 || open / limit < MAX_FILES_SHARE)
      return [];
    return [
      warning("files", label, {
        seen: `${open} of ${limit} open files`,
        right: "less than 80% of the limit: each client and each file of the store needs one",
        next: "raise LimitNOFILE in its systemd unit (systemctl edit quorate) and restart it",
      }),
    ];
  });
}
