/** The report of a shadow: the JSON that is written and served, and its verdict in a line. */
import type { Otherwise } from "./otherwise.ts";

/** A difference that was found: the first one. Values of keys are not in it. */
export interface FoundDifference {
  /** The voter that differs from the shadow. */
  readonly member: string;
  readonly memberId: string;
  /** Where the hashes were compared. */
  readonly hashRevision: number;
  readonly compactRevision: number;
  readonly hash: number;
  readonly otherHash: number;
  /** Voters whose hash there was the shadow's. */
  readonly equalVoters: number;
  /** The first revision that differs, and its key; undefined while or where they are not known. */
  readonly revision?: number | undefined;
  readonly key?: string | undefined;
  readonly seen: string;
  readonly at: string;
}

export interface ReportedMember {
  readonly name: string;
  readonly id: string;
  readonly version: string;
  readonly isLeader: boolean;
  readonly isLearner: boolean;
  readonly appliedIndex: number;
  readonly databaseBytes: number;
  readonly databaseInUseBytes: number;
  /** 0 where it does not say, as etcd 3.5. */
  readonly quotaBytes: number;
  /** Why it gave no answer; empty where it did. */
  readonly problem: string;
}

/** How it goes on: "left" is the end in order. */
export type Phase = "joining" | "following" | "leaving" | "left" | "ended";

export interface ShadowReport {
  readonly verdict: string;
  readonly phase: Phase;
  /** Why it ended; empty before. */
  readonly reason: string;
  readonly version: string;
  readonly name: string;
  readonly memberId: string;
  readonly clusterId: string;
  readonly startedAt: string;
  readonly writtenAt: string;
  readonly followedSeconds: number;
  readonly revisions: {
    readonly first: number;
    readonly current: number;
    readonly compacted: number;
    /** Revisions that were found equal, and the last of them. */
    readonly equal: number;
    readonly equalThrough: number;
  };
  readonly comparisons: {
    readonly equal: number;
    readonly different: number;
    /** Where no voter could be compared. */
    readonly none: number;
    readonly lastProblem: string;
  };
  /** Those applied here, and comparisons after one that were equal. */
  readonly compactions: { readonly applied: number; readonly equal: number };
  readonly difference: FoundDifference | null;
  readonly store: {
    readonly appliedIndex: number;
    readonly lagEntries: number;
    readonly keys: number;
    readonly liveBytes: number;
    readonly keyBytes: number;
  };
  /** Requests that were applied, by kind, and all of them a second since the report before. */
  readonly requests: Readonly<Record<string, number>>;
  readonly requestsPerSecond: number;
  readonly otherwise: readonly Otherwise[];
  readonly members: readonly ReportedMember[];
}

/** What was found, in a line. */
export function verdictOf({
  difference,
  revisions,
}: Pick<ShadowReport, "difference" | "revisions">): string {
  if (difference !== null) {
    const { member, revision, key, seen, hashRevision } = difference;
    const where = revision === undefined ? `at or before ${hashRevision}` : `at ${revision}`;
    return `differs from ${member}: the first revision is ${where}${key === undefined ? "" : `, key ${key}`} (${seen})`;
  }
  if (revisions.equal === 0) return "nothing was compared yet";
  return `equal over ${revisions.equal} revisions, up to ${revisions.equalThrough}`;
}
