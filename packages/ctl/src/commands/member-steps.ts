/**
 * Changes of the membership in steps that can be interrupted and repeated: each starts from the
 * cluster's present members. A step that is refused for now, or whose outcome is unknown, is taken
 * again.
 */
import { Exit, ExitCode, type Io } from "@quorate/cli";

/** Interval between retries of a step. */
const RETRY_MS = 500;
/** Interval between reports of what the command waits for. */
const REPORT_INTERVAL_MS = 10_000;

/**
 * Error codes of a step that may succeed later.
 */
const PASSING = new Set<string | undefined>([
  "MemberLearnerNotReady",
  "Unhealthy",
  "NoLeader",
  "NotLeader",
  "LeaderChanged",
  "Stopped",
  "Timeout",
  "TimeoutDueToLeaderFail",
  "TimeoutDueToConnectionLost",
  "TooManyRequests",
  // The step succeeded, but its response was lost: the next round sees the new members.
  "PeerURLExist",
  "MemberExist",
  "MemberNotLearner",
  "MemberNotFound",
]);
const UNAVAILABLE = 14;
const DEADLINE_EXCEEDED = 4;

/** What a step did: it was the last one; or what the next one waits for, "" for nothing. */
export interface Stepped {
  readonly done: boolean;
  readonly waitsFor: string;
}

/**
 * Takes steps until one is the last, and reports what they wait for. Rejects with what a step
 * rejects with, unless that may pass; with Exit after the deadline.
 */
export async function repeatSteps(
  io: Io,
  deadlineNs: bigint,
  step: () => Promise<Stepped>,
): Promise<void> {
  let reported = "";
  let reportedNs = 0n;
  for (;;) {
    let waitsFor: string;
    try {
      const result = await step();
      if (result.done) return;
      waitsFor = result.waitsFor;
    } catch (error) {
      const { code, grpcCode, message } = error as {
        code?: string;
        grpcCode?: number;
        message: string;
      };
      if (
        error instanceof Exit ||
        (!PASSING.has(code) && grpcCode !== UNAVAILABLE && grpcCode !== DEADLINE_EXCEEDED)
      )
        throw error;
      if (code === undefined && grpcCode === undefined) throw error;
      waitsFor = message;
    }
    if (waitsFor === "") continue;
    const nowNs = io.nowNs();
    if (nowNs >= deadlineNs) {
      throw new Exit(
        ExitCode.error,
        `gave up waiting: ${waitsFor}; run the same command again to continue`,
      );
    }
    if (waitsFor !== reported || nowNs - reportedNs >= BigInt(REPORT_INTERVAL_MS) * 1_000_000n) {
      io.stderr(`waiting: ${waitsFor}\n`);
      reported = waitsFor;
      reportedNs = nowNs;
    }
    await io.sleep(RETRY_MS);
  }
}
