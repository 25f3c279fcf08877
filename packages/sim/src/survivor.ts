/**
 * The end of a cluster that loses its majority for good: one member is left, which has all that was
 * ever applied somewhere, and so all that was acknowledged. It is started with --force-new-cluster,
 * crashes in the middle of that now and then, and goes on alone.
 */
import type { Random } from "@quorate/host";
import type { ServerConfig } from "@quorate/server";
import type { Scheduler } from "./base/scheduler.ts";
import type { RaftCheck } from "./check/raft.ts";
import type { Safety } from "./check/safety.ts";
import type { Network } from "./network.ts";
import type { Node } from "./node.ts";
import type { Story } from "./report/story.ts";

/** Crashes in the middle of the start. */
const MAX_CRASHES = 3;
const LOOK_MS = 20;

export interface SurvivorDeps {
  /** Everybody's list of machines: changed in place. */
  readonly nodes: Node[];
  readonly scheduler: Scheduler;
  readonly story: Story;
  readonly random: Random;
  readonly network: Network;
  readonly safety: Safety;
  readonly raftCheck: RaftCheck;
  /** The flags of a machine's next start. */
  configOf(node: Node, isForced: boolean): Promise<ServerConfig>;
}

/**
 * Takes all machines but one away, and restarts that one as a cluster of its own; returns false
 * where none is left that has everything.
 */
export async function continueAlone(deps: SurvivorDeps): Promise<boolean> {
  const { nodes, scheduler, story, random, network, safety, raftCheck, configOf } = deps;
  for (const node of nodes) node.crash("power");
  const fit = nodes.filter(
    (node) => !node.gone && !node.refused && node.hasRun && !node.isAltered && hasAll(node, safety),
  );
  if (fit.length === 0) return false;
  const survivor = fit[random.below(fit.length)];
  story.record("world", `all are lost but ${survivor.name}, which goes on alone`);
  for (const node of nodes) if (node !== survivor) node.retire();
  nodes.splice(0, nodes.length, survivor);
  network.dropAll();
  // Whatever the others had or did in later terms, or had not sent this one, is lost with them.
  safety.forgetLost();
  raftCheck.forgetLost(safety.lastIndex);
  survivor.reconfigure(await configOf(survivor, true));
  for (let left = random.below(MAX_CRASHES + 1); left > 0; left--) {
    survivor.crashAtDisk(random.below(40));
    for (let i = 0; i < 100 && !survivor.down && survivor.member === undefined; i++)
      await scheduler.delay(LOOK_MS);
    survivor.crash("power");
  }
  survivor.machine.heal();
  if (survivor.down) survivor.start();
  while (survivor.member === undefined) {
    await scheduler.delay(LOOK_MS);
    if (survivor.down) survivor.start();
  }
  survivor.reconfigure(await configOf(survivor, false));
  return true;
}

/**
 * Whether a machine's disk has everything that was applied anywhere, and its member still belongs
 * to the cluster.
 */
function hasAll(node: Node, safety: Safety): boolean {
  const end = node.logEnd;
  const last = safety.lastIndex;
  if (
    end === undefined ||
    end.lastIndex < last ||
    safety.isRemoved(node.memberId) ||
    end.removes(node.memberId)
  )
    return false;
  return end.beginsAt >= last || end.termOf(last) === safety.termAt(last);
}
