/** Types of meta/v1. The format is in ../table-parser.ts. */
export const metaTypes = `
APIGroup
  ...=0:TypeMeta name!=1:string versions!=2:[GroupVersionForDiscovery](list=atomic)
  preferredVersion?=3:GroupVersionForDiscovery
  serverAddressByClientCIDRs?=4:[ServerAddressByClientCIDR](list=atomic)
APIGroupList
  ...=0:TypeMeta groups!=1:[APIGroup](list=atomic)
APIResource
  name!=1:string singularName!=6:string namespaced!=2:bool group?=8:string version?=9:string
  kind!=3:string verbs!=4:Verbs shortNames?=5:[string](list=atomic)
  categories?=7:[string](list=atomic) storageVersionHash?=10:string
APIResourceList
  ...=0:TypeMeta groupVersion!=1:string resources!=2:[APIResource](list=atomic)
APIVersions
  ...=0:TypeMeta versions!=1:[string](list=atomic)
  serverAddressByClientCIDRs!=2:[ServerAddressByClientCIDR](list=atomic)
Condition
  type!=1:string status!=2:string~ConditionStatus observedGeneration?=3:int64
  lastTransitionTime!=4:Time reason!=5:string message!=6:string
CreateOptions
  ...=0:TypeMeta dryRun?=1:[string] fieldManager?=3:string fieldValidation?=4:string
DeleteOptions
  ...=0:TypeMeta gracePeriodSeconds?=1:*int64 preconditions?=2:*Preconditions
  orphanDependents?=3:*bool propagationPolicy?=4:*string~DeletionPropagation
  dryRun?=5:[string](list=atomic) ignoreStoreReadErrorWithClusterBreakingPotential?=6:*bool
FieldSelectorRequirement
  key!=1:string operator!=2:string~FieldSelectorOperator values?=3:[string](list=atomic)
GetOptions
  ...=0:TypeMeta resourceVersion?=1:string
GroupResource
  group!=1:string resource!=2:string
GroupVersionForDiscovery
  groupVersion!=1:string version!=2:string
GroupVersionKind
  group=1:string version=2:string kind=3:string
GroupVersionResource
  group=1:string version=2:string resource=3:string
LabelSelector (mapType=atomic)
  matchLabels?=1:{string} matchExpressions?=2:[LabelSelectorRequirement](list=atomic)
LabelSelectorRequirement
  key!=1:string operator!=2:string~LabelSelectorOperator values?=3:[string](list=atomic)
ListMeta
  selfLink?=1:string resourceVersion?=2:string continue?=3:string remainingItemCount?=4:*int64
  shardInfo?=5:*ShardInfo
ListOptions
  ...=0:TypeMeta labelSelector?=1:string fieldSelector?=2:string watch?=3:bool
  allowWatchBookmarks?=9:bool resourceVersion?=4:string
  resourceVersionMatch?=10:string~ResourceVersionMatch timeoutSeconds?=5:*int64 limit?=7:int64
  continue?=8:string sendInitialEvents?=11:*bool shardSelector?=15:string
ManagedFieldsEntry
  manager?=1:string operation?=2:string~ManagedFieldsOperationType apiVersion?=3:string
  time?=4:*Time fieldsType?=6:string fieldsV1?=7:*FieldsV1 subresource?=8:string
ObjectMeta
  name?=1:string generateName?=2:string namespace?=3:string selfLink?=4:string
  uid?=5:string~types.UID resourceVersion?=6:string generation?=7:int64 creationTimestamp??=8:Time
  deletionTimestamp?=9:*Time deletionGracePeriodSeconds?=10:*int64 labels?=11:{string}
  annotations?=12:{string} ownerReferences?=13:[OwnerReference](patch=merge:uid,list=map:uid)
  finalizers?=14:[string](patch=merge,list=set)
  managedFields?=17:[ManagedFieldsEntry](list=atomic)
OwnerReference (mapType=atomic)
  apiVersion!=5:string kind!=1:string name!=3:string uid!=4:string~types.UID controller?=6:*bool
  blockOwnerDeletion?=7:*bool
PartialObjectMetadata
  ...=0:TypeMeta metadata?=1:ObjectMeta
PartialObjectMetadataList
  ...=0:TypeMeta metadata?=1:ListMeta items=2:[PartialObjectMetadata]
PatchOptions
  ...=0:TypeMeta dryRun?=1:[string] force?=2:*bool fieldManager?=3:string
  fieldValidation?=4:string
Preconditions
  uid?=1:*string~types.UID resourceVersion?=2:*string
ServerAddressByClientCIDR
  clientCIDR!=1:string serverAddress!=2:string
ShardInfo
  selector!=1:string
Status
  ...=0:TypeMeta metadata?=1:ListMeta status?=2:string message?=3:string
  reason?=4:string~StatusReason details?=5:*StatusDetails code?=6:int32
StatusCause
  reason?=1:string~CauseType message?=2:string field?=3:string
StatusDetails
  name?=1:string group?=2:string kind?=3:string uid?=6:string~types.UID
  causes?=4:[StatusCause](list=atomic) retryAfterSeconds?=5:int32
Table
  ...=0:TypeMeta metadata?=0:ListMeta columnDefinitions=0:[TableColumnDefinition]
  rows=0:[TableRow]
TableColumnDefinition
  name=0:string type=0:string format=0:string description=0:string priority=0:int32
TableOptions
  ...=0:TypeMeta includeObject?=1:string~IncludeObjectPolicy
TableRow
  cells=0:[any] conditions?=0:[TableRowCondition] object?=0:runtime.RawExtension
TableRowCondition
  type=0:string~RowConditionType status=0:string~ConditionStatus reason?=0:string
  message?=0:string
TypeMeta
  kind?=1:string apiVersion?=2:string
UpdateOptions
  ...=0:TypeMeta dryRun?=1:[string] fieldManager?=2:string fieldValidation?=3:string
Verbs = [string]
WatchEvent
  type!=1:string object!=2:runtime.RawExtension
`;
