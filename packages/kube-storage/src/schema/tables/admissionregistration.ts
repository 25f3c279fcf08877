/** Types of admissionregistration.k8s.io/v1. The format is in ../table-parser.ts. */
export const admissionregistrationTypes = `
ApplyConfiguration
  expression?=1:string
AuditAnnotation
  key!=1:string valueExpression!=2:string
ExpressionWarning
  fieldRef!=2:string warning!=3:string
JSONPatch
  expression?=1:string
MatchCondition
  name!=1:string expression!=2:string
MatchResources (mapType=atomic)
  namespaceSelector?=1:*meta.LabelSelector objectSelector?=2:*meta.LabelSelector
  resourceRules?=3:[NamedRuleWithOperations](list=atomic)
  excludeResourceRules?=4:[NamedRuleWithOperations](list=atomic)
  matchPolicy?=7:*string~MatchPolicyType
MutatingAdmissionPolicy and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:MutatingAdmissionPolicySpec
MutatingAdmissionPolicyBinding and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:MutatingAdmissionPolicyBindingSpec
MutatingAdmissionPolicyBindingSpec
  policyName?=1:string paramRef?=2:*ParamRef matchResources?=3:*MatchResources
MutatingAdmissionPolicySpec
  paramKind?=1:*ParamKind matchConstraints?=2:*MatchResources variables?=3:[Variable](list=atomic)
  mutations?=4:[Mutation](list=atomic) failurePolicy?=5:*string~FailurePolicyType
  matchConditions?=6:[MatchCondition](patch=merge:name,list=map:name)
  reinvocationPolicy?=7:string~ReinvocationPolicyType
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
Mutation
  patchType!=2:string~PatchType applyConfiguration?=3:*ApplyConfiguration jsonPatch?=4:*JSONPatch
NamedRuleWithOperations (mapType=atomic)
  resourceNames?=1:[string](list=atomic) ...=2:RuleWithOperations
ParamKind (mapType=atomic)
  apiVersion?=1:string kind?=2:string
ParamRef (mapType=atomic)
  name?=1:string namespace?=2:string selector?=3:*meta.LabelSelector
  parameterNotFoundAction?=4:*string~ParameterNotFoundActionType
Rule
  apiGroups?=1:[string] apiVersions?=2:[string] resources?=3:[string] scope?=4:*string~ScopeType
RuleWithOperations
  operations?=1:[string~OperationType](list=atomic) ...=2:Rule
ServiceReference
  namespace!=1:string name!=2:string path?=3:*string port?=4:*int32
TypeChecking
  expressionWarnings?=1:[ExpressionWarning](list=atomic)
ValidatingAdmissionPolicy and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:ValidatingAdmissionPolicySpec
  status?=3:ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyBinding and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?!=2:ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec
  policyName?!=1:string paramRef?=2:*ParamRef matchResources?=3:*MatchResources
  validationActions?!=4:[string~ValidationAction](list=set)
ValidatingAdmissionPolicySpec
  paramKind?=1:*ParamKind matchConstraints?=2:*MatchResources
  validations?=3:[Validation](list=atomic) failurePolicy?=4:*string~FailurePolicyType
  auditAnnotations?=5:[AuditAnnotation](list=atomic)
  matchConditions?=6:[MatchCondition](patch=merge:name,list=map:name)
  variables?=7:[Variable](patch=merge:name,list=map:name)
ValidatingAdmissionPolicyStatus
  observedGeneration?=1:int64 typeChecking?=2:*TypeChecking
  conditions?=3:[meta.Condition](list=map:type)
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
Validation
  expression!=1:string message?=2:string reason?=3:*string~meta.StatusReason
  messageExpression?=4:string
Variable (mapType=atomic)
  name!=1:string expression!=2:string
WebhookClientConfig
  url?=3:*string service?=1:*ServiceReference caBundle?=2:bytes
`;
