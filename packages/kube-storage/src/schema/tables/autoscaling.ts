/** Types of autoscaling/v1. The format is in ../table-parser.ts. */
export const autoscalingTypes = `
CrossVersionObjectReference (mapType=atomic)
  kind!=1:string name!=2:string apiVersion?=3:string
HorizontalPodAutoscaler and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?!=2:HorizontalPodAutoscalerSpec
  status?=3:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerSpec
  scaleTargetRef!=1:CrossVersionObjectReference minReplicas?=2:*int32 maxReplicas!=3:int32
  targetCPUUtilizationPercentage?=4:*int32
HorizontalPodAutoscalerStatus
  observedGeneration?=1:*int64 lastScaleTime?=2:*meta.Time currentReplicas!=3:int32
  desiredReplicas!=4:int32 currentCPUUtilizationPercentage?=5:*int32
Scale
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:ScaleSpec status?=3:ScaleStatus
ScaleSpec
  replicas?=1:int32(default=0)
ScaleStatus
  replicas!=1:int32 selector?=2:string
`;
