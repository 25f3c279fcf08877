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

const memberColumn: TopColumn = {
  title: "MEMBER",
  doc: "the member's name",
  isText: true,
  from: "status",
  rank: 0,
  value: ({ label }) => label,
};

const roleColumn: TopColumn = {
  title: "ROLE",
  doc: "leader, follower, learner; or how long it has been silent",
  isText: true,
  from: "status",
  rank: 0,
  value: (row, _all, age) => role(row, age),
};

const metric =
  (name: string) =>
  ({ now }: Row) =>
    now?.metrics.value(name);

const lagColumn: TopColumn = {
  title: "LAG",
  doc: "entries behind the newest known entry",
  from: "status",
  rank: 1,
  value: (row, all) => figures.lag(row, all),
  limits: [1000, 5000],
};
const quotaColumn: TopColumn = {
  title: "QUOTA",
  doc: "used share of the space quota",
  from: "metrics",
  rank: 3,
  value: figures.quota,
  show: shownShare,
  limits: [0.8, 0.9],
};
const fsyncColumn: TopColumn = {
  title: "FSYNC",
  doc: "99th percentile of the syncs of its log's disk",
  from: "metrics",
  rank: 2,
  value: figures.fsyncP99,
  show: shownSeconds,
  limits: [0.05, 0.1],
};
const loopColumn: TopColumn = {
  title: "LOOP",
  doc: "99th percentile of the turns of its event loop",
  from: "metrics",
  rank: 7,
  value: metric("nodejs_eventloop_lag_p99_seconds"),
  show: shownSeconds,
  limits: [0.05, 0.25],
};
const cpuColumn: TopColumn = {
  title: "CPU",
  doc: "processor time; 100% is one processor",
  from: "metrics",
  rank: 4,
  value: (row) => rate(row, "process_cpu_seconds_total"),
  show: shownShare,
  limits: [0.9, 2],
};
const memoryColumn: TopColumn = {
  title: "MEMORY",
  doc: "resident memory",
  from: "metrics",
  rank: 5,
  value: metric("process_resident_memory_bytes"),
  show: shownBytes,
};
const requestColumn: TopColumn = {
  title: "REQUEST",
  doc: "99th percentile of its requests",
  from: "metrics",
  rank: 6,
  value: (row) => p99(row, "etcd_server_request_duration_seconds"),
  show: shownSeconds,
  limits: [0.1, 0.5],
};

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
      {
        title: "CALLS/S",
        doc: "finished gRPC calls per second",
        from: "metrics",
        rank: 2,
        value: figures.calls,
        show: shownRate,
      },
      {
        title: "READS/S",
        doc: "ranges per second",
        from: "metrics",
        rank: 6,
        value: (row) => rate(row, "etcd_mvcc_range_total"),
        show: shownRate,
      },
      requestColumn,
      fsyncColumn,
      loopColumn,
      cpuColumn,
      memoryColumn,
      quotaColumn,
      {
        title: "CONNS",
        doc: "client connections",
        from: "metrics",
        rank: 8,
        value: metric("quorate_rpc_connections"),
      },
      {
        title: "WATCHERS",
        doc: "watchers",
        from: "metrics",
        rank: 9,
        value: metric("etcd_debugging_mvcc_watcher_total"),
      },
      {
        title: "VERSION",
        doc: "version of the server",
        isText: true,
        from: "status",
        rank: 10,
        value: ({ status }) => status?.version,
      },
    ],
  },
  {
    name: "latency",
    columns: [
      memberColumn,
      roleColumn,
      { ...requestColumn, rank: 1 },
      {
        title: "APPLY",
        doc: "99th percentile of applying an entry",
        from: "metrics",
        rank: 2,
        value: (row) => p99(row, "etcd_server_apply_duration_seconds"),
        show: shownSeconds,
        limits: [0.05, 0.25],
      },
      { ...fsyncColumn, rank: 1 },
      {
        title: "COMMIT",
        doc: "99th percentile of the synced batches of its store",
        from: "metrics",
        rank: 3,
        value: (row) => p99(row, "etcd_disk_backend_commit_duration_seconds"),
        show: shownSeconds,
        limits: [0.25, 1],
      },
      {
        title: "PEER",
        doc: "99th percentile of the round trip to other members",
        from: "metrics",
        rank: 4,
        value: (row) => p99(row, "etcd_network_peer_round_trip_time_seconds"),
        show: shownSeconds,
        limits: [0.05, 0.15],
      },
      { ...loopColumn, rank: 5 },
      {
        title: "PENDING",
        doc: "pending proposals",
        from: "metrics",
        rank: 6,
        value: metric("etcd_server_proposals_pending"),
        limits: [100, 1000],
      },
    ],
  },
  {
    name: "store",
    columns: [
      memberColumn,
      roleColumn,
      { ...quotaColumn, rank: 1 },
      {
        title: "IN USE",
        doc: "bytes of live records",
        from: "status",
        rank: 1,
        value: ({ status }) => status?.dbSizeInUse,
        show: shownBytes,
      },
      {
        title: "DB SIZE",
        doc: "bytes of the store's files",
        from: "status",
        rank: 2,
        value: ({ status }) => status?.dbSize,
        show: shownBytes,
      },
      {
        title: "KEYS",
        doc: "keys",
        from: "metrics",
        rank: 3,
        value: metric("etcd_debugging_mvcc_keys_total"),
      },
      { title: "LEASES", doc: "leases", from: "metrics", rank: 4, value: figures.leases },
      {
        title: "INDEX",
        doc: "index of the last applied entry",
        from: "status",
        rank: 3,
        value: ({ status }) => status?.raftAppliedIndex,
      },
      { ...lagColumn, rank: 5 },
      {
        title: "TERM",
        doc: "Raft's term",
        from: "status",
        rank: 6,
        value: ({ status }) => status?.raftTerm,
      },
    ],
  },
  {
    name: "process",
    columns: [
      memberColumn,
      roleColumn,
      { ...cpuColumn, rank: 1 },
      { ...memoryColumn, rank: 1 },
      {
        title: "HEAP",
        doc: "used heap memory",
        from: "metrics",
        rank: 3,
        value: figures.heap,
        show: shownBytes,
      },
      { ...loopColumn, rank: 2 },
      {
        title: "CONNS",
        doc: "client connections",
        from: "metrics",
        rank: 2,
        value: metric("quorate_rpc_connections"),
      },
      {
        title: "WATCHERS",
        doc: "watchers",
        from: "metrics",
        rank: 3,
        value: metric("etcd_debugging_mvcc_watcher_total"),
      },
      {
        title: "FILES",
        doc: "open files as a share of the limit",
        from: "metrics",
        rank: 4,
        value: ({ now }) =>
          share(now?.metrics.value("process_open_fds"), now?.metrics.value("process_max_fds")),
        show: shownShare,
        limits: [0.6, 0.8],
      },
      {
        title: "UPTIME",
        doc: "time since its process started",
        from: "metrics",
        rank: 5,
        value: uptime,
        show: (ms) => shownAge(ms),
      },
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
