/** What follows from an observation. */
import type { QuorateCluster } from "../base/kinds.ts";
import type { KubeObject } from "../base/kube.ts";
import { claimOf, ZONE } from "./objects.ts";
import { type MemberView, type Observed, ordinalOf } from "./observed.ts";

/** The highest number of a member that there is, or was; -1 for none. */
export function highestNumber({ cluster, pods, claims, strangers, members }: Observed): number {
  const names = [...pods.keys(), ...claims.keys(), ...strangers];
  for (const { pod } of members ?? []) names.push(pod);
  return Math.max(cluster.status?.lastNumber ?? -1, ...names.map(ordinalOf));
}

/** Name of a new member, which no other one had. */
function freeName(observed: Observed): string {
  return `${observed.cluster.metadata.name}-${highestNumber(observed) + 1}`;
}

/** The zone for a new claim: the one with the fewest disks of members; undefined for any. */
function freeZone({ cluster, claims, members }: Observed): string | undefined {
  const isGone = (id: string | undefined): boolean =>
    id !== undefined && members?.some((one) => one.id === id) === false;
  const taken = [...claims.values()].filter(
    ({ isLost, isTerminating, memberId }) => !isLost && !isTerminating && !isGone(memberId),
  );
  const count = (zone: string): number => taken.filter((one) => one.zone === zone).length;
  const [first] = (cluster.spec!.zones ?? []).toSorted((a, b) => count(a) - count(b));
  return first;
}

/** A claim for a new member. */
export function newClaimOf(
  observed: Observed,
  marks: Readonly<Record<string, string>>,
): KubeObject {
  const zone = freeZone(observed);
  const all = zone === undefined ? marks : { ...marks, [ZONE]: zone };
  return claimOf(observed.cluster, freeName(observed), all);
}

/** A member that responds and whose pod is ready. */
export function isWell({ pod }: MemberView, { pods, reached }: Observed): boolean {
  const view = pods.get(pod);
  return view !== undefined && view.isReady && !view.isTerminating && reached.has(pod);
}

/** The data of a member are gone for good. */
export function hasLostDisk(
  name: string,
  { pods, claims }: Pick<Observed, "pods" | "claims">,
): boolean {
  const [pod, claim] = [pods.get(name), claims.get(name)];
  if (pod?.isReady) return false;
  if (claim === undefined || claim.isLost) return true;
  if (claim.isTerminating && pod === undefined) return true;
  return pod?.hasLostData === true && claim.hasStarted;
}

/** Members that vote. */
export const votersOf = ({ members = [] }: Observed): MemberView[] =>
  members.filter(({ isLearner }) => !isLearner);

/** The member that leads, by what those say that respond. */
export function leaderOf({ reached, members = [] }: Observed): MemberView | undefined {
  let newest = 0;
  let leader: string | undefined;
  for (const one of reached.values()) {
    if (one.leader === "0" || one.term < newest) continue;
    newest = one.term;
    ({ leader } = one);
  }
  return members.find(({ id }) => id === leader);
}

/** The number of a cluster's history after its keys went back to an older state. */
export const nextHistory = ({ status }: QuorateCluster): number => (status?.history ?? 0) + 1;
