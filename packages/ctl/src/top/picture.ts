/**
 * What a frame is made of: everything that is known at one moment, with what is old marked as such.
 */
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
  /** Members that are listed and not shown. */
  readonly leftOut: number;
  /** Writes and reads of the cluster a second, a value for each interval, oldest first. */
  readonly writes: readonly number[];
  readonly reads: readonly number[];
}

/** The picture of this moment. */
export function pictureOf(
  observer: Observer,
  times: { wallMs: number; nowMs: number; intervalMs: number },
): Picture {
  const all = Number.MAX_SAFE_INTEGER;
  const { rows, leftOut, writes, reads } = observer;
  return { ...times, rows, leftOut, writes: writes.last(all), reads: reads.last(all) };
}

/** Times between looks after which what a member said is old, and the least time of that. */
const OLD_AFTER_INTERVALS = 2;
const OLD_AFTER_AT_LEAST_MS = 1500;

/**
 * How old a row's figures are. A member is silent when its last look failed, or when the next
 * answer is long due.
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

/** Whether a row's figures are of this moment. */
export function isFresh(row: Row, times: Pick<Picture, "nowMs" | "intervalMs">): boolean {
  const { silentMs, hasOldMetrics } = ageOf(row, times);
  return row.status !== undefined && silentMs === undefined && !hasOldMetrics;
}

/** Who leads, as the members that answer see it: the newest term counts. */
export function leaderOf(
  picture: Picture,
):
  | { readonly row: Row | undefined; readonly term: number; readonly isSilent: boolean }
  | undefined {
  const answering = picture.rows.filter(
    (row) => row.status !== undefined && ageOf(row, picture).silentMs === undefined,
  );
  const knowing = answering.filter(({ status }) => status!.leader !== 0n);
  const newest = knowing.reduce<Row | undefined>(
    (a, b) => (a === undefined || b.status!.raftTerm > a.status!.raftTerm ? b : a),
    undefined,
  );
  if (newest === undefined) return undefined;
  const { leader, raftTerm } = newest.status!;
  const row = picture.rows.find(({ memberId }) => memberId === leader);
  return {
    row,
    term: raftTerm,
    isSilent: row === undefined || !answering.includes(row) || !leads(row),
  };
}
