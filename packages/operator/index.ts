/** An operator for Kubernetes: clusters, backups, restores and users as objects. */
export { BackupReconciler } from "./src/backups.ts";
export type { QuorateCluster } from "./src/base/kinds.ts";
export {
  type Key,
  type Kind,
  type Kube,
  KubeError,
  type KubeObject,
  type MergePatch,
} from "./src/base/kube.ts";
export type { Members, Membership, Permission, Target } from "./src/base/members.ts";
export { OperatorMetrics } from "./src/base/metrics.ts";
export { definitions } from "./src/base/schemas.ts";
export type { Certifier, Pair } from "./src/cluster/certificates.ts";
export { MODE } from "./src/cluster/objects.ts";
export { DATA_LOST_CODE, type MemberView } from "./src/cluster/observed.ts";
export { ClusterReconciler } from "./src/cluster/reconciler.ts";
export { Election } from "./src/election.ts";
export { Operator } from "./src/operator.ts";
export { RestoreReconciler } from "./src/restores.ts";
export { UserReconciler } from "./src/users.ts";
