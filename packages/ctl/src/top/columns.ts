/**
 * The columns of top's tables: the cell for a member, and the thresholds of warnings.
 */
import { defined } from "@quorate/proto";
import { refusedLogin } from "../observe/login.ts";
import { figures, leads, p99, rate } from "./figures.ts";
import { shownBytes, shownCount, shownRate, shownSeconds, shownShare, UNKNOWN } from "./numbers.ts";
import type { Row } from "./row.ts";

/** warn: a warning; bad: a problem. */
export type Level = "warn" | "bad";

/** The state of a row at the time of the frame. */
export interface RowAge {
  /** How long a member has been silent, in milliseconds; undefined while it responds. */
  readonly silentMs: number | undefined;
  /** Whether its metrics are overdue. */
  readonly hasOldMetrics: boolean;
}

export interface TopColumn {
  readonly title: string;
  /** For the help. */
  readonly doc: string;
  /** Texts are aligned left, numbers right. */
  readonly isText?: boolean;
  /** The source of the value: stale values are dimmed. */
  readonly from: "status" | "metrics";
  /** Columns with a low rank stay on a narrow screen. */
  readonly rank: number;
  readonly value: (row: Row, all: readonly Row[], age: RowAge) => number | string | undefined;
  readonly show?: (value: number) => string;
  /** The thresholds of warn and bad. */
  readonly limits?: readonly [warn: number, bad: number];
}

const columnOf =
  (from: TopColumn["from"]) =>
  (
    title: string,
    rank: number,
    doc: string,
    more: Omit<TopColumn, "title" | "rank" | "doc" | "from">,
  ): TopColumn => ({
    title,
    doc,
    from,
    rank,
    ...more,
  });
const fromStatus = columnOf("status");
const fromMetrics = columnOf("metrics");

/** A cell. */
export function cellText(column: TopColumn, value: number | string | undefined): string {
  if (value === undefined) return UNKNOWN;
  return typeof value === "string" ? value : (column.show ?? shownCount)(value);
}

export function levelOf(
  { limits }: TopColumn,
  value: number | string | undefined,
): Level | undefined {
  if (limits === undefined || typeof value !== "number") return undefined;
  return value >= limits[1] ? "bad" : value >= limits[0] ? "warn" : undefined;
}

/** A short duration: "9s", "3m", "2h". */
export function shownAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return seconds < 120
    ? `${seconds}s`
    : seconds < 7200
      ? `${Math.floor(seconds / 60)}m`
      : `${Math.floor(seconds / 3600)}h`;
}

function role(row: Row, { silentMs }: RowAge): string {
  if (row.isNeverStarted) return "unstarted";
  if (silentMs !== undefined) {
    if (row.status !== undefined) return `silent ${shownAge(silentMs)}`;
    return refusedLogin(row) === undefined ? "no response" : "needs login";
  }
  if (row.status === undefined) return "asking";
  if (leads(row)) return "leader";
  return row.status.isLearner ? "learner" : row.status.leader === 0n ? "no leader" : "follower";
}

const memberColumn = fromStatus("MEMBER", 0, "the member's name", {
  isText: true,
  value: ({ label }) => label,
});

const roleColumn = fromStatus(
  "ROLE",
  0,
  "leader, follower, learner; or how long it has been silent",
  { isText: true, value: (row, _all, age) => role(row, age) },
);

const metric =
  (name: string) =>
  ({ now }: Row) =>
    now?.metrics.value(name);

const lagColumn = fromStatus("LAG", 1, "entries behind the newest known entry", {
  value: (row, all) => figures.lag(row, all),
  limits: [1000, 5000],
});
const quotaColumn = fromMetrics("QUOTA", 3, "used share of the space quota", {
  value: figures.quota,
  show: shownShare,
  limits: [0.8, 0.9],
});
const fsyncColumn = fromMetrics("FSYNC", 2, "99th percentile of the syncs of its log's disk", {
  value: figures.fsyncP99,
  show: shownSeconds,
  limits: [0.05, 0.1],
});
const loopColumn = fromMetrics("LOOP", 7, "99th percentile of the turns of its event loop", {
  value: metric("nodejs_eventloop_lag_p99_seconds"),
  show: shownSeconds,
  limits: [0.05, 0.25],
});
const cpuColumn = fromMetrics("CPU", 4, "processor time; 100% is one processor", {
  value: (row) => rate(row, "process_cpu_seconds_total"),
  show: shownShare,
  limits: [0.9, 2],
});
const memoryColumn = fromMetrics("MEMORY", 5, "resident memory", {
  value: metric("process_resident_memory_bytes"),
  show: shownBytes,
});
const requestColumn = fromMetrics("REQUEST", 6, "99th percentile of its requests", {
  value: (row) => p99(row, "etcd_server_request_duration_seconds"),
  show: shownSeconds,
  limits: [0.1, 0.5],
});

/** A table that a key selects. */
export interface View {
  readonly name: string;
  readonly columns: readonly TopColumn[];
}

/** The view at a position of `views`. */
export function viewAt(position: number): View {
  return defined(views[position], "the view");
}

/** In the order of their keys, from 1. */
export const views: readonly View[] = [
  {
    name: "members",
    columns: [
      memberColumn,
      roleColumn,
      lagColumn,
      fromMetrics("CALLS/S", 2, "finished gRPC calls per second", {
        value: figures.calls,
        show: shownRate,
      }),
      fromMetrics("READS/S", 6, "ranges per second", {
        value: (row) => rate(row, "etcd_mvcc_range_total"),
        show: shownRate,
      }),
      requestColumn,
      fsyncColumn,
      loopColumn,
      cpuColumn,
      memoryColumn,
      quotaColumn,
      fromMetrics("CONNS", 8, "client connections", { value: metric("quorate_rpc_connections") }),
      fromMetrics("WATCHERS", 9, "watchers", {
        value: metric("etcd_debugging_mvcc_watcher_total"),
      }),
      fromStatus("VERSION", 10, "version of the server", {
        isText: true,
        value: ({ status }) => status?.version,
      }),
    ],
  },
  {
    name: "latency",
    columns: [
      memberColumn,
      roleColumn,
      { ...requestColumn, rank: 1 },
      fromMetrics("APPLY", 2, "99th percentile of applying an entry", {
        value: (row) => p99(row, "etcd_server_apply_duration_seconds"),
        show: shownSeconds,
        limits: [0.05, 0.25],
      }),
      { ...fsyncColumn, rank: 1 },
      fromMetrics("COMMIT", 3, "99th percentile of the synced batches of its store", {
        value: (row) => p99(row, "etcd_disk_backend_commit_duration_seconds"),
        show: shownSeconds,
        limits: [0.25, 1],
      }),
      fromMetrics("PEER", 4, "99th percentile of the round trip to other members", {
        value: (row) => p99(row, "etcd_network_peer_round_trip_time_seconds"),
        show: shownSeconds,
        limits: [0.05, 0.15],
      }),
      { ...loopColumn, rank: 5 },
      fromMetrics("PENDING", 6, "pending proposals", {
        value: metric("etcd_server_proposals_pending"),
        limits: [100, 1000],
      }),
    ],
  },
  {
    name: "store",
    columns: [
      memberColumn,
      roleColumn,
      { ...quotaColumn, rank: 1 },
      fromStatus("IN USE", 1, "bytes of live records", {
        value: ({ status }) => status?.dbSizeInUse,
        show: shownBytes,
      }),
      fromStatus("DB SIZE", 2, "bytes of the store's files", {
        value: ({ status }) => status?.dbSize,
        show: shownBytes,
      }),
      fromMetrics("KEYS", 3, "keys", { value: metric("etcd_debugging_mvcc_keys_total") }),
      fromMetrics("LEASES", 4, "leases", { value: figures.leases }),
      fromStatus("INDEX", 3, "index of the last applied entry", {
        value: ({ status }) => status?.raftAppliedIndex,
      }),
      { ...lagColumn, rank: 5 },
      fromStatus("TERM", 6, "Raft's term", { value: ({ status }) => status?.raftTerm }),
    ],
  },
  {
    name: "process",
    columns: [
      memberColumn,
      roleColumn,
      { ...cpuColumn, rank: 1 },
      { ...memoryColumn, rank: 1 },
      fromMetrics("HEAP", 3, "used heap memory", { value: figures.heap, show: shownBytes }),
      { ...loopColumn, rank: 2 },
      fromMetrics("CONNS", 2, "client connections", { value: metric("quorate_rpc_connections") }),
      fromMetrics("WATCHERS", 3, "watchers", {
        value: metric("etcd_debugging_mvcc_watcher_total"),
      }),
      fromMetrics("FILES", 4, "open files as a share of the limit", {
        value: ({ now }) =>
          share(now?.metrics.value("process_open_fds"), now?.metrics.value("process_max_fds")),
        show: shownShare,
        limits: [0.6, 0.8],
      }),
      fromMetrics("UPTIME", 5, "time since its process started", {
        value: uptime,
        show: (ms) => shownAge(ms),
      }),
    ],
  },
];

function share(part: number | undefined, whole: number | undefined): number | undefined {
  return part === undefined || whole === undefined || whole <= 0 ? undefined : part / whole;
}

/** By the member's own clock if it exports that. */
function uptime({ now }: Row): number | undefined {
  const started = now?.metrics.value("process_start_time_seconds");
  const clock = now?.metrics.value("quorate_server_clock_seconds");
  return started === undefined || clock === undefined
    ? undefined
    : Math.max(0, clock - started) * 1000;
}
