/** Types of apiregistration.k8s.io/v1. The format is in ../table-parser.ts. */
export const apiregistrationTypes = `
APIService and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:APIServiceSpec status?=3:APIServiceStatus
APIServiceCondition
  type!=1:string~APIServiceConditionType status!=2:string~ConditionStatus
  lastTransitionTime?=3:meta.Time reason?=4:string message?=5:string
APIServiceSpec
  service?=1:*ServiceReference group?=2:string version?=3:string insecureSkipTLSVerify?=4:bool
  caBundle?=5:bytes(list=atomic) groupPriorityMinimum!=7:int32 versionPriority!=8:int32
APIServiceStatus
  conditions?=1:[APIServiceCondition](patch=merge:type,list=map:type)
ServiceReference
  namespace?=1:string name?=2:string port?=3:*int32
`;
