/**
 * The data of a frame: the state at one moment, with stale figures marked.
 */
import { hasResponded, type Responded } from "../observe/responded.ts";
import type { RowAge } from "./columns.ts";
import { leads } from "./figures.ts";
import type { Observer } from "./observer.ts";
import type { Row } from "./row.ts";

export interface Picture {
  /** This machine's clock, in milliseconds since 1970. */
  readonly wallMs: number;
  readonly nowMs: number;
  readonly intervalMs: number;
  readonly rows: readonly Row[];
  /** Number of listed members that are not shown. */
  readonly leftOut: number;
  /** Write and read rates of the cluster, one value per interval, oldest first. */
  readonly writes: readonly number[];
  readonly reads: readonly number[];
}

/** The data at this moment. */
export function pictureOf(
  observer: Observer,
  times: { wallMs: number; nowMs: number; intervalMs: number },
): Picture {
  const all = Number.MAX_SAFE_INTEGER;
  const { rows, leftOut, writes, reads } = observer;
  return { ...times, rows, leftOut, writes: writes.last(all), reads: reads.last(all) };
}

/** Figures are stale after this many intervals, and not before the minimum below. */
const OLD_AFTER_INTERVALS = 2;
const OLD_AFTER_AT_LEAST_MS = 1500;

/**
 * The age of a row's figures. A member is silent when its last poll failed or its response is
 * overdue.
 */
export function ageOf(
  row: Row,
  { nowMs, intervalMs }: Pick<Picture, "nowMs" | "intervalMs">,
): RowAge {
  const oldAfterMs = Math.max(OLD_AFTER_INTERVALS * intervalMs, OLD_AFTER_AT_LEAST_MS);
  const ageMs = row.statusAtMs === undefined ? undefined : nowMs - row.statusAtMs;
  const isSilent = row.failure !== undefined || (ageMs !== undefined && ageMs > oldAfterMs);
  return {
    silentMs: isSilent ? (ageMs ?? 0) : undefined,
    hasOldMetrics: row.now !== undefined && nowMs - row.now.atMs > oldAfterMs,
  };
}

/** Whether a row's figures are up to date. */
export function isFresh(row: Row, times: Pick<Picture, "nowMs" | "intervalMs">): boolean {
  const { silentMs, hasOldMetrics } = ageOf(row, times);
  return row.status !== undefined && silentMs === undefined && !hasOldMetrics;
}

/** The leader as responding members report it; the newest term counts. */
export function leaderOf(
  picture: Picture,
):
  | { readonly row: Row | undefined; readonly term: number; readonly isSilent: boolean }
  | undefined {
  const answering = picture.rows
    .filter(hasResponded)
    .filter((row) => ageOf(row, picture).silentMs === undefined);
  const knowing = answering.filter(({ status }) => status.leader !== 0n);
  const newest = knowing.reduce<Responded<Row> | undefined>(
    (a, b) => (a === undefined || b.status.raftTerm > a.status.raftTerm ? b : a),
    undefined,
  );
  if (newest === undefined) return undefined;
  const { leader, raftTerm } = newest.status;
  const row = picture.rows.find(({ memberId }) => memberId === leader);
  return {
    row,
    term: raftTerm,
    isSilent: row === undefined || !answering.some((one) => one === row) || !leads(row),
  };
}
