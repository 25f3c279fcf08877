/** What a member does for its place in the cluster and for the cluster itself. */
import type { AskMembers } from "@quorate/transport";

export { AutoPromotion } from "./auto-promotion.ts";
export { Departure, type Removal } from "./departure.ts";
export { Leadership } from "./leadership.ts";
export { quorumOf } from "./quorum-checks.ts";
export { Reconfiguration } from "./reconfiguration.ts";
export { askMembers } from "./remote-cluster.ts";
export { VersionMonitor } from "./version-monitor.ts";

/** What the links to other members need of this one. */
export interface LinkQuestions {
  /** Whether a member was removed from the cluster: the refusal of its messages says so. */
  isRemoved(id: bigint): boolean;
  /** A peer says that this member was removed. */
  selfRemoved(): void;
  readonly askMembers: AskMembers;
  /** Whether this member's cluster may have members of etcd. */
  takesEtcd(): boolean;
}
