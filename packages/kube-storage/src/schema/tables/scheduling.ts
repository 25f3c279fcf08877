/** Types of scheduling.k8s.io/v1. The format is in ../table-parser.ts. */
export const schedulingTypes = `
PriorityClass and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta value=2:int32 globalDefault?=3:bool
  description?=4:string preemptionPolicy?=5:*string~core.PreemptionPolicy
`;
