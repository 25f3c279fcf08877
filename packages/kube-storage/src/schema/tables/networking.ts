/** Types of networking.k8s.io/v1. The format is in ../table-parser.ts. */
export const networkingTypes = `
HTTPIngressPath
  path?=1:string pathType!=3:*string~PathType backend!=2:IngressBackend
HTTPIngressRuleValue
  paths!=1:[HTTPIngressPath](list=atomic)
IPAddress and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?!=2:IPAddressSpec
IPAddressSpec
  parentRef?!=1:*ParentReference
IPBlock
  cidr!=1:string except?=2:[string](list=atomic)
Ingress and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:IngressSpec status?=3:IngressStatus
IngressBackend
  service?=4:*IngressServiceBackend resource?=3:*core.TypedLocalObjectReference
IngressClass and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:IngressClassSpec
IngressClassParametersReference
  apiGroup?=1:*string kind!=2:string name!=3:string scope=4:*string namespace?=5:*string
IngressClassSpec
  controller?=1:string parameters?=2:*IngressClassParametersReference
IngressLoadBalancerIngress
  ip?=1:string hostname?=2:string ports?=4:[IngressPortStatus](list=atomic)
IngressLoadBalancerStatus
  ingress?=1:[IngressLoadBalancerIngress](list=atomic)
IngressPortStatus
  port!=1:int32 protocol!=2:string~core.Protocol error?=3:*string
IngressRule
  host?=1:string ...=2:IngressRuleValue
IngressRuleValue
  http?=1:*HTTPIngressRuleValue
IngressServiceBackend
  name!=1:string port?=2:ServiceBackendPort
IngressSpec
  ingressClassName?=4:*string defaultBackend?=1:*IngressBackend tls?=2:[IngressTLS](list=atomic)
  rules?=3:[IngressRule](list=atomic)
IngressStatus
  loadBalancer?=1:IngressLoadBalancerStatus
IngressTLS
  hosts?=1:[string](list=atomic) secretName?=2:string
NetworkPolicy and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:NetworkPolicySpec
NetworkPolicyEgressRule
  ports?=1:[NetworkPolicyPort](list=atomic) to?=2:[NetworkPolicyPeer](list=atomic)
NetworkPolicyIngressRule
  ports?=1:[NetworkPolicyPort](list=atomic) from?=2:[NetworkPolicyPeer](list=atomic)
NetworkPolicyPeer
  podSelector?=1:*meta.LabelSelector namespaceSelector?=2:*meta.LabelSelector ipBlock?=3:*IPBlock
NetworkPolicyPort
  protocol?=1:*string~core.Protocol port?=2:*intstr.IntOrString endPort?=3:*int32
NetworkPolicySpec
  podSelector=1:meta.LabelSelector ingress?=2:[NetworkPolicyIngressRule](list=atomic)
  egress?=3:[NetworkPolicyEgressRule](list=atomic) policyTypes?=4:[string~PolicyType](list=atomic)
ParentReference
  group?=1:string resource?!=2:string namespace?=3:string name?!=4:string
ServiceBackendPort (mapType=atomic)
  name?=1:string number?=2:int32
ServiceCIDR and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:ServiceCIDRSpec
  status?=3:ServiceCIDRStatus
ServiceCIDRSpec
  cidrs?=1:[string](list=atomic)
ServiceCIDRStatus
  conditions?=1:[meta.Condition](patch=merge:type,list=map:type)
`;
