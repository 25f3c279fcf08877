/** Types of flowcontrol.apiserver.k8s.io/v1. The format is in ../table-parser.ts. */
export const flowcontrolTypes = `
ExemptPriorityLevelConfiguration
  nominalConcurrencyShares?=1:*int32 lendablePercent?=2:*int32
FlowDistinguisherMethod
  type!=1:string~FlowDistinguisherMethodType
FlowSchema and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:FlowSchemaSpec status?=3:FlowSchemaStatus
FlowSchemaCondition
  type?=1:string~FlowSchemaConditionType status?=2:string~ConditionStatus
  lastTransitionTime?=3:meta.Time reason?=4:string message?=5:string
FlowSchemaSpec
  priorityLevelConfiguration!=1:PriorityLevelConfigurationReference matchingPrecedence=2:int32
  distinguisherMethod?=3:*FlowDistinguisherMethod rules?=4:[PolicyRulesWithSubjects](list=atomic)
FlowSchemaStatus
  conditions?=1:[FlowSchemaCondition](patch=merge:type,list=map:type)
GroupSubject
  name!=1:string
LimitResponse
  type!=1:string~LimitResponseType queuing?=2:*QueuingConfiguration
LimitedPriorityLevelConfiguration
  nominalConcurrencyShares=1:*int32 limitResponse?=2:LimitResponse lendablePercent?=3:*int32
  borrowingLimitPercent?=4:*int32
NonResourcePolicyRule
  verbs!=1:[string](list=set) nonResourceURLs!=6:[string](list=set)
PolicyRulesWithSubjects
  subjects!=1:[Subject](list=atomic) resourceRules?=2:[ResourcePolicyRule](list=atomic)
  nonResourceRules?=3:[NonResourcePolicyRule](list=atomic)
PriorityLevelConfiguration and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:PriorityLevelConfigurationSpec
  status?=3:PriorityLevelConfigurationStatus
PriorityLevelConfigurationCondition
  type?=1:string~PriorityLevelConfigurationConditionType status?=2:string~ConditionStatus
  lastTransitionTime?=3:meta.Time reason?=4:string message?=5:string
PriorityLevelConfigurationReference
  name!=1:string
PriorityLevelConfigurationSpec
  type!=1:string~PriorityLevelEnablement limited?=2:*LimitedPriorityLevelConfiguration
  exempt?=3:*ExemptPriorityLevelConfiguration
PriorityLevelConfigurationStatus
  conditions?=1:[PriorityLevelConfigurationCondition](patch=merge:type,list=map:type)
QueuingConfiguration
  queues=1:int32 handSize=2:int32 queueLengthLimit=3:int32
ResourcePolicyRule
  verbs!=1:[string](list=set) apiGroups!=2:[string](list=set) resources!=3:[string](list=set)
  clusterScope?=4:bool namespaces=5:[string](list=set)
ServiceAccountSubject
  namespace!=1:string name!=2:string
Subject
  kind!=1:string~SubjectKind user?=2:*UserSubject group?=3:*GroupSubject
  serviceAccount?=4:*ServiceAccountSubject
UserSubject
  name!=1:string
`;
