/** Types of admissionregistration.k8s.io/v1. The format is in ../table-parser.ts. */
export const admissionregistrationTypes = `
MatchCondition
  name!=1:string expression!=2:string
MutatingWebhook
  name!=1:string clientConfig!=2:WebhookClientConfig rules?=3:[RuleWithOperations](list=atomic)
  failurePolicy?=4:*string~FailurePolicyType matchPolicy?=9:*string~MatchPolicyType
  namespaceSelector?=5:*meta.LabelSelector objectSelector?=11:*meta.LabelSelector
  sideEffects!=6:*string~SideEffectClass timeoutSeconds?=7:*int32
  admissionReviewVersions!=8:[string](list=atomic)
  reinvocationPolicy?=10:*string~ReinvocationPolicyType
  matchConditions?=12:[MatchCondition](patch=merge:name,list=map:name)
MutatingWebhookConfiguration and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta
  webhooks?=2:[MutatingWebhook](patch=merge:name,list=map:name)
Rule
  apiGroups?=1:[string](list=atomic) apiVersions?=2:[string](list=atomic)
  resources?=3:[string](list=atomic) scope?=4:*string~ScopeType
RuleWithOperations
  operations?=1:[string~OperationType](list=atomic) ...=2:Rule
ServiceReference
  namespace!=1:string name!=2:string path?=3:*string port?=4:*int32
ValidatingWebhook
  name!=1:string clientConfig!=2:WebhookClientConfig rules?=3:[RuleWithOperations](list=atomic)
  failurePolicy?=4:*string~FailurePolicyType matchPolicy?=9:*string~MatchPolicyType
  namespaceSelector?=5:*meta.LabelSelector objectSelector?=10:*meta.LabelSelector
  sideEffects!=6:*string~SideEffectClass timeoutSeconds?=7:*int32
  admissionReviewVersions!=8:[string](list=atomic)
  matchConditions?=11:[MatchCondition](patch=merge:name,list=map:name)
ValidatingWebhookConfiguration and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta
  webhooks?=2:[ValidatingWebhook](patch=merge:name,list=map:name)
WebhookClientConfig
  url?=3:*string service?=1:*ServiceReference caBundle?=2:bytes
`;
