/** Types of policy/v1. The format is in ../table-parser.ts. */
export const policyTypes = `
Eviction
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta deleteOptions?=2:*meta.DeleteOptions
PodDisruptionBudget and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:PodDisruptionBudgetSpec
  status?=3:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec
  minAvailable?=1:*intstr.IntOrString selector?=2:*meta.LabelSelector(patch=replace)
  maxUnavailable?=3:*intstr.IntOrString
  unhealthyPodEvictionPolicy?=4:*string~UnhealthyPodEvictionPolicyType
PodDisruptionBudgetStatus
  observedGeneration?=1:int64 disruptedPods?=2:{meta.Time} disruptionsAllowed=3:int32
  currentHealthy=4:int32 desiredHealthy=5:int32 expectedPods=6:int32
  conditions?=7:[meta.Condition](patch=merge:type,list=map:type)
`;
