/**
 * What came of a run: its hash, what went on in it and how much of it was looked at, and what was
 * wrong.
 */

import type { FaultKind } from "./base/fault-kinds.ts";
import type { AlarmBook } from "./check/alarms.ts";
import type { ArchiveCheck } from "./check/archives.ts";
import type { CorruptionCheck } from "./check/corruption.ts";
import type { Judgement, RecordedHistory } from "./check/judge.ts";
import type { LeaseCheck } from "./check/lease-lives.ts";
import type { WatchCheck } from "./check/watches.ts";
import type { HostileClients } from "./hostile-clients.ts";
import type { Node } from "./node.ts";
import type { Operator } from "./operator.ts";
import type { Registrar } from "./registrar.ts";
import type { Story } from "./report/story.ts";
import type { Saboteur } from "./saboteur.ts";
import type { StreamClients } from "./stream-clients.ts";
import type { Users } from "./users/users.ts";

export interface RunResult {
  readonly seed: number;
  /** What is wrong; undefined if all is well. */
  readonly violation: string | undefined;
  readonly hash: string;
  readonly simulatedMs: number;
  readonly events: number;
  readonly operations: number;
  readonly answered: number;
  readonly entries: number;
  readonly elections: number;
  readonly messages: number;
  readonly snapshots: number;
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  readonly refusedToStart: number;
  /** Members that the operator gave up: a sync had lied, and the log did not show it. */
  readonly liesUnnoticed: number;
  /** How often members passed each fault point, and how often one crashed there. */
  readonly points: Readonly<Record<string, { passed: number; crashed: number }>>;
  readonly alarms: AlarmBook["counts"];
  readonly operator: Operator["counts"];
  readonly corruption: CorruptionCheck["counts"] & Saboteur["counts"];
  readonly archives: ArchiveCheck["counts"];
  /** Whether one member went on alone when the others were lost. */
  readonly survived: boolean;
  /** Looked at by the checks of the log and of the stores. */
  readonly checked: {
    readonly entriesWritten: number;
    readonly leaders: number;
    readonly hashesCompared: number;
  };
  readonly cluster: Registrar["counts"];
  readonly watches: WatchCheck["counts"];
  readonly leases: LeaseCheck["counts"];
  readonly hostile: HostileClients["counts"];
  /** Ranges in parts. */
  readonly streams: StreamClients["counts"];
  /** Undefined in a run without users. */
  readonly users: Users["counts"] | undefined;
  readonly verdict: Judgement | undefined;
  readonly history: RecordedHistory;
  readonly story: Story;
}

/** The fault points that members passed, of all of them together. */
export function pointsOf(
  nodes: readonly Node[],
): Record<string, { passed: number; crashed: number }> {
  const points: Record<string, { passed: number; crashed: number }> = {};
  for (const { crashPoints } of nodes) {
    for (const [point, { passed, crashed }] of crashPoints.passes) {
      const sum = points[point];
      points[point] = {
        passed: (sum?.passed ?? 0) + passed,
        crashed: (sum?.crashed ?? 0) + crashed,
      };
    }
  }
  return points;
}
