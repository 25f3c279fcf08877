/** What a seed decides before the run starts. */
import { SeededRandom } from "@quorate/host";

export interface ScheduleOptions {
  readonly seed: number;
  readonly members: number;
  readonly steps: number;
  readonly preVote: boolean;
  readonly checkQuorum: boolean;
  readonly readOnly: "quorum" | "lease";
  readonly electionTicks: number;
  readonly heartbeatTicks: number;
  readonly maxMessageBytes: number;
  readonly maxInflightMessages: number;
  readonly maxInflightBytes: number;
  readonly maxUncommittedBytes: number;
  readonly maxCommittedBytesPerReady: number;
  readonly maxPendingReads: number;
  /** Chances of a message to get lost, to come twice, to be overtaken. */
  readonly loss: number;
  readonly duplication: number;
  readonly reordering: number;
  /** Chance of a message (or of its double) to come so late that much has happened meanwhile. */
  readonly lateness: number;
  /** How fast time goes against everything else. */
  readonly tickSpeed: number;
  /** How often things happen, against each other. */
  readonly crashes: number;
  readonly restarts: number;
  readonly campaigns: number;
  readonly partitions: number;
  readonly confChanges: number;
  readonly transfers: number;
  readonly compactions: number;
  /** How often a member's disk and state machine get to run: low values let Readys pile up. */
  readonly diskSpeed: number;
  /** Messages go through the codec. */
  readonly encode: boolean;
}

/** The options of a seed. */
export function optionsOf(seed: number): ScheduleOptions {
  const random = new SeededRandom(BigInt(seed)).fork("options");
  const one = <T>(...choices: T[]): T => choices[random.below(choices.length)];
  const checkQuorum = random.below(3) > 0;
  const readOnly = checkQuorum && random.below(3) === 0 ? "lease" : "quorum";
  const maxMessageBytes = one(1, 80, 200, 1000, 1 << 20);
  return {
    seed,
    members: one(1, 2, 3, 3, 3, 3, 3, 3, 4, 5, 5, 5),
    steps: one(3000, 10_000),
    preVote: random.below(3) > 0,
    checkQuorum,
    readOnly,
    electionTicks: readOnly === "lease" ? one(8, 10, 20) : one(3, 5, 10),
    heartbeatTicks: one(1, 1, 2),
    maxMessageBytes,
    maxInflightMessages: one(1, 2, 4, 64),
    maxInflightBytes: Math.max(maxMessageBytes, one(1, 200, 1 << 20)),
    maxUncommittedBytes: one(20, 1000, 1 << 20),
    maxCommittedBytesPerReady: one(1, 100, 1 << 20),
    maxPendingReads: one(1, 4, 1000),
    loss: one(0, 0, 0, 0.02, 0.02, 0.1, 0.3),
    duplication: one(0, 0, 0.02, 0.2),
    reordering: one(0, 0, 0.1, 0.5),
    lateness: one(0, 0, 0.02, 0.1),
    tickSpeed: readOnly === "lease" ? one(10, 30) : one(40, 100, 200),
    crashes: one(0, 1, 4, 12),
    restarts: one(3, 10, 100),
    campaigns: one(0, 5, 10, 60),
    partitions: one(0, 2, 6, 12),
    confChanges: one(0, 0, 5, 20),
    transfers: one(0, 0, 2, 8),
    compactions: one(0, 10, 40),
    diskSpeed: one(40, 100, 300),
    encode: random.below(8) === 0,
  };
}
