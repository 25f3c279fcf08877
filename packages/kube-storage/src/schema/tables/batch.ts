/** Types of batch/v1. The format is in ../table-parser.ts. */
export const batchTypes = `
CronJob and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?!=2:CronJobSpec status?=3:CronJobStatus
CronJobSpec
  schedule!=1:string timeZone?=8:*string startingDeadlineSeconds?=2:*int64
  concurrencyPolicy?=3:string~ConcurrencyPolicy suspend?=4:*bool jobTemplate!=5:JobTemplateSpec
  successfulJobsHistoryLimit?=6:*int32 failedJobsHistoryLimit?=7:*int32
CronJobStatus
  active?=1:[core.ObjectReference](list=atomic) lastScheduleTime?=4:*meta.Time
  lastSuccessfulTime?=5:*meta.Time
Job and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:JobSpec status?=3:JobStatus
JobCondition
  type!=1:string~JobConditionType status!=2:string~core.ConditionStatus lastProbeTime?=3:meta.Time
  lastTransitionTime?=4:meta.Time reason?=5:string message?=6:string
JobSpec
  parallelism?=1:*int32 completions?=2:*int32 activeDeadlineSeconds?=3:*int64
  podFailurePolicy?=11:*PodFailurePolicy successPolicy?=16:*SuccessPolicy backoffLimit?=7:*int32
  backoffLimitPerIndex?=12:*int32 maxFailedIndexes?=13:*int32 selector?=4:*meta.LabelSelector
  manualSelector?=5:*bool template!=6:core.PodTemplateSpec ttlSecondsAfterFinished?=8:*int32
  completionMode?=9:*string~CompletionMode suspend?=10:*bool
  podReplacementPolicy?=14:*string~PodReplacementPolicy managedBy?=15:*string
JobStatus
  conditions?=1:[JobCondition](patch=merge:type,list=atomic) startTime?=2:*meta.Time
  completionTime?=3:*meta.Time active?=4:int32 succeeded?=5:int32 failed?=6:int32
  terminating?=11:*int32 completedIndexes?=7:string failedIndexes?=10:*string
  uncountedTerminatedPods?=8:*UncountedTerminatedPods ready?=9:*int32
JobTemplateSpec
  metadata?=1:meta.ObjectMeta spec?=2:JobSpec
PodFailurePolicy
  rules!=1:[PodFailurePolicyRule](list=atomic)
PodFailurePolicyOnExitCodesRequirement
  containerName?=1:*string operator!=2:string~PodFailurePolicyOnExitCodesOperator
  values!=3:[int32](list=set)
PodFailurePolicyOnPodConditionsPattern
  type!=1:string~core.PodConditionType status=2:string~core.ConditionStatus
PodFailurePolicyRule
  action!=1:string~PodFailurePolicyAction onExitCodes?=2:*PodFailurePolicyOnExitCodesRequirement
  onPodConditions?=3:[PodFailurePolicyOnPodConditionsPattern](list=atomic)
SuccessPolicy
  rules!=1:[SuccessPolicyRule](list=atomic)
SuccessPolicyRule
  succeededIndexes?=1:*string succeededCount?=2:*int32
UncountedTerminatedPods
  succeeded?=1:[string~types.UID](list=set) failed?=2:[string~types.UID](list=set)
`;
