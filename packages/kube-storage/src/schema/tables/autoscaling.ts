/** Types of autoscaling/v1. The format is in ../table-parser.ts. */
export const autoscalingTypes = `
Scale
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:ScaleSpec status?=3:ScaleStatus
ScaleSpec
  replicas?=1:int32(default=0)
ScaleStatus
  replicas!=1:int32 selector?=2:string
`;
