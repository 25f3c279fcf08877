/** Types of rbac.authorization.k8s.io/v1. The format is in ../table-parser.ts. */
export const rbacTypes = `
AggregationRule
  clusterRoleSelectors?=1:[meta.LabelSelector](list=atomic)
ClusterRole and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta rules=2:[PolicyRule](list=atomic)
  aggregationRule?=3:*AggregationRule
ClusterRoleBinding and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta subjects?=2:[Subject](list=atomic)
  roleRef!=3:RoleRef
PolicyRule
  verbs!=1:[string](list=atomic) apiGroups?=2:[string](list=atomic)
  resources?=3:[string](list=atomic) resourceNames?=4:[string](list=atomic)
  nonResourceURLs?=5:[string](list=atomic)
Role and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta rules=2:[PolicyRule](list=atomic)
RoleBinding and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta subjects?=2:[Subject](list=atomic)
  roleRef!=3:RoleRef
RoleRef (mapType=atomic)
  apiGroup=1:string kind!=2:string name!=3:string
Subject (mapType=atomic)
  kind!=1:string apiGroup?=2:string name!=3:string namespace?=4:string
`;
