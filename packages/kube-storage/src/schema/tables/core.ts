/** Types of core/v1 that control planes without nodes need. The format is in ../table-parser.ts. */
export const coreTypes = `
ConfigMap and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta immutable?=4:*bool data?=2:{string}
  binaryData?=3:{bytes}
Event and List
  ...=0:meta.TypeMeta metadata!=1:meta.ObjectMeta involvedObject!=2:ObjectReference
  reason?=3:string message?=4:string source?=5:EventSource firstTimestamp?=6:meta.Time
  lastTimestamp?=7:meta.Time count?=8:int32 type?=9:string eventTime?=10:meta.MicroTime
  series?=11:*EventSeries action?=12:string related?=13:*ObjectReference
  reportingComponent=14:string reportingInstance=15:string
EventSeries
  count?=1:int32 lastObservedTime?=2:meta.MicroTime
EventSource
  component?=1:string host?=2:string
LocalObjectReference (mapType=atomic)
  name?=1:string(default="")
Namespace and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:NamespaceSpec status?=3:NamespaceStatus
NamespaceCondition
  type!=1:string~NamespaceConditionType status!=2:string~ConditionStatus
  lastTransitionTime?=4:meta.Time reason?=5:string message?=6:string
NamespaceSpec
  finalizers?=1:[string~FinalizerName](list=atomic)
NamespaceStatus
  phase?=1:string~NamespacePhase
  conditions?=2:[NamespaceCondition](patch=merge:type,list=map:type)
ObjectReference (mapType=atomic)
  kind?=1:string namespace?=2:string name?=3:string uid?=4:string~types.UID apiVersion?=5:string
  resourceVersion?=6:string fieldPath?=7:string
Secret and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta immutable?=5:*bool data?=2:{bytes}
  stringData?=4:{string} type?=3:string~SecretType
ServiceAccount and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta
  secrets?=2:[ObjectReference](patch=merge:name,list=map:name)
  imagePullSecrets?=3:[LocalObjectReference](list=atomic) automountServiceAccountToken?=4:*bool
`;
