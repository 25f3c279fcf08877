/**
 * Restarts the members one after the other, so that a majority runs all the time: the leader last,
 * and each only when the doctor says that the others work.
 *
 *     for each member   doctor --restart-safe NAME   repeated until it says yes
 *                       stop, start, wait until it is healthy
 */
import { setTimeout as delay } from "node:timers/promises";
import { runningPid, type Say, startCluster, stopCluster } from "./control.ts";
import type { ClusterPlan, MemberPlan } from "./layout.ts";
import { askMember } from "./status.ts";
import { ctl, ToolError } from "./tools.ts";

/** How long the others may take until a member can be restarted. */
const SAFE_LIMIT_MS = 60_000;
const POLL_MS = 1000;

/** What a rolling restart asks the cluster. */
export interface ClusterQuestions {
  /** "leader", or what else the member is. */
  role(member: MemberPlan): Promise<string>;
  /** Undefined if the member can be restarted now, or why it cannot; asked at `other`. */
  againstRestart(member: MemberPlan, other: MemberPlan): Promise<string | undefined>;
}

function realQuestions(plan: ClusterPlan): ClusterQuestions {
  return {
    role: async (member) => (await askMember(plan, member)).role,
    async againstRestart(member, other) {
      try {
        await ctl(plan, other, "doctor", "--restart-safe", member.name);
        return undefined;
      } catch (error) {
        if (!(error instanceof ToolError)) throw error;
        return error.message;
      }
    },
  };
}

/**
 * Restarts all members, one at a time; first starts those that do not run. True when all are
 * healthy.
 */
export async function restartRolling(
  plan: ClusterPlan,
  say: Say,
  questions: ClusterQuestions = realQuestions(plan),
  limitMs: number = SAFE_LIMIT_MS,
): Promise<boolean> {
  const missing = plan.members.filter((member) => runningPid(plan, member) === undefined);
  // With nothing missing this only looks at the certificates, before anything is stopped.
  if (!(await startCluster(plan, say, missing))) return false;
  const left = plan.members.filter((member) => !missing.includes(member));
  while (left.length > 0) {
    // Leadership moves when a leader stops: who leads is asked each time.
    const roles = await Promise.all(left.map((member) => questions.role(member)));
    const follower = roles.findIndex((role) => role !== "leader");
    const [member] = left.splice(Math.max(0, follower), 1);
    const other = plan.members.find((one) => one !== member) ?? member;
    if (!(await untilSafe(member, () => questions.againstRestart(member, other), say, limitMs)))
      return false;
    if (!(await stopCluster(plan, say, [member]))) return false;
    if (!(await startCluster(plan, say, [member]))) return false;
  }
  return true;
}

async function untilSafe(
  member: MemberPlan,
  ask: () => Promise<string | undefined>,
  say: Say,
  limitMs: number,
): Promise<boolean> {
  const startedMs = performance.now();
  let before: string | undefined;
  for (;;) {
    const reason = await ask();
    if (reason === undefined) return true;
    if (reason !== before) say(`${member.name} waits: ${reason}`);
    before = reason;
    if (performance.now() - startedMs > limitMs) {
      say(`gave up after ${limitMs / 1000} s; ${member.name} was not stopped`);
      return false;
    }
    await delay(Math.min(POLL_MS, limitMs));
  }
}
