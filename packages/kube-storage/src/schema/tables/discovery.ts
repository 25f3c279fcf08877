/** Types of discovery.k8s.io/v1. The format is in ../table-parser.ts. */
export const discoveryTypes = `
Endpoint
  addresses!=1:[string](list=set) conditions?=2:EndpointConditions hostname?=3:*string
  targetRef?=4:*core.ObjectReference deprecatedTopology?=5:{string} nodeName?=6:*string
  zone?=7:*string hints?=8:*EndpointHints
EndpointConditions
  ready?=1:*bool serving?=2:*bool terminating?=3:*bool
EndpointHints
  forZones?=1:[ForZone](list=atomic) forNodes?=2:[ForNode](list=atomic)
EndpointPort (mapType=atomic)
  name?=1:*string protocol?=2:*string~core.Protocol port?=3:*int32 appProtocol?=4:*string
EndpointSlice and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta addressType!=4:string~AddressType
  endpoints=2:[Endpoint](list=atomic) ports=3:[EndpointPort](list=atomic)
ForNode
  name!=1:string
ForZone
  name!=1:string
`;
