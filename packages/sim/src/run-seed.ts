/** Runs one seed, and says what came of it. */

import type { SimOptions } from "./base/options.ts";
import { watchRejections } from "./base/rejections.ts";
import type { Explains } from "./check/judge.ts";
import type { GuestFactory } from "./guests.ts";
import { configsOf } from "./member-config.ts";
import { pointsOf, type RunResult } from "./result.ts";
import { World } from "./world.ts";

/**
 * Runs a seed's options to the end. Never rejects: what is wrong is in the result.
 * @param explains the last events of each member are kept, to be printed, and a history that fails
 * is made small and drawn, which takes longer than the run. A function is called with what is wrong
 * before that begins.
 */
export async function runSeed(
  options: SimOptions,
  explains: Explains = true,
  guests?: GuestFactory,
): Promise<RunResult> {
  const world = new World(options, await configsOf(options), explains, guests);
  let violation: string | undefined;
  const fail = (error: unknown): void => world.fail(error);
  try {
    await watchRejections(fail, () => world.live());
  } catch (error) {
    violation = error instanceof Error ? (error.stack ?? error.message) : String(error);
    world.story.record(
      "world",
      `violation: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  for (const node of world.nodes) node.process?.end();
  const { scheduler, clients, nemesis, story, nodes } = world;
  const { safety, network } = world.cluster;
  return {
    seed: options.seed,
    violation,
    hash: story.hash,
    simulatedMs: scheduler.nowMs,
    events: scheduler.events,
    operations: clients.operations.length,
    answered: clients.answered,
    entries: safety.lastIndex,
    elections: safety.elections,
    messages: network.messages,
    snapshots: network.snapshots,
    faults: Object.fromEntries(nemesis.counts),
    liesUnnoticed: nodes.reduce((sum, node) => sum + node.liesUnnoticed, 0),
    refusedToStart: nodes.filter((node) => node.refused).length,
    points: pointsOf(nodes),
    alarms: safety.alarms.counts,
    operator: world.operator.counts,
    corruption: { ...world.cluster.corruptionCheck.counts, ...world.saboteur.counts },
    archives: world.archives.counts,
    survived: world.survived,
    cluster: world.registrar.counts,
    watches: world.watchCheck.counts,
    leases: world.cluster.leaseCheck.counts,
    hostile: world.hostileClients.counts,
    users: world.users?.counts,
    streams: world.streamClients.counts,
    checked: {
      entriesWritten: world.cluster.raftCheck.counts.entries,
      leaders: world.cluster.raftCheck.counts.leaders,
      hashesCompared: world.cluster.hashCheck.compared,
    },
    verdict: world.verdict,
    history: { operations: clients.operations, compactions: clients.compactions },
    story,
  };
}
