/** The operator of its parts: each kind with who works on it. */
import { BackupReconciler } from "./backups.ts";
import { type ClusterDeps, ClusterReconciler } from "./cluster/reconciler.ts";
import type { Rules } from "./cluster/step.ts";
import { Operator, type OperatorDeps } from "./operator.ts";
import { RestoreReconciler } from "./restores.ts";
import { UserReconciler } from "./users.ts";

/** @param namespace the one that is watched, "" for all */
export function newOperator(
  namespace: string,
  rules: Rules,
  deps: ClusterDeps & OperatorDeps,
): Operator {
  const reconcilers = {
    QuorateCluster: new ClusterReconciler(rules, deps),
    QuorateBackup: new BackupReconciler(deps),
    QuorateRestore: new RestoreReconciler(deps),
    QuorateUser: new UserReconciler(deps),
  };
  return new Operator(namespace, reconcilers, deps);
}
