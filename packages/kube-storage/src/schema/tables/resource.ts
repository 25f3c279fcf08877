/** Types of resource.k8s.io/v1. The format is in ../table-parser.ts. */
export const resourceTypes = `
AllocatedDeviceStatus
  driver!=1:string pool!=2:string device!=3:string shareID?=7:*string
  conditions=4:[meta.Condition](list=map:type) data?=5:*runtime.RawExtension
  networkData?=6:*NetworkDeviceData
AllocationResult
  devices?=1:DeviceAllocationResult nodeSelector?=3:*core.NodeSelector
  allocationTimestamp?=5:*meta.Time
CELDeviceSelector
  expression!=1:string
CapacityRequestPolicy
  default=1:*resource.Quantity validValues?=3:[resource.Quantity](list=atomic)
  validRange?=4:*CapacityRequestPolicyRange
CapacityRequestPolicyRange
  min?!=1:*resource.Quantity max?=2:*resource.Quantity step?=3:*resource.Quantity
CapacityRequirements
  requests?=1:{resource.Quantity}
Counter
  value!=1:resource.Quantity
CounterSet
  name!=1:string counters?!=2:{Counter}
Device
  name!=1:string attributes?=2:{DeviceAttribute} capacity?=3:{DeviceCapacity}
  consumesCounters?=4:[DeviceCounterConsumption](list=atomic) nodeName?=5:*string
  nodeSelector?=6:*core.NodeSelector allNodes?=7:*bool taints?=8:[DeviceTaint](list=atomic)
  bindsToNode?=9:*bool bindingConditions?=10:[string](list=atomic)
  bindingFailureConditions?=11:[string](list=atomic) allowMultipleAllocations?=12:*bool
  nodeAllocatableResourceMappings?=13:{NodeAllocatableResourceMapping}
DeviceAllocationConfiguration
  source!=1:string~AllocationConfigSource requests?=2:[string](list=atomic)
  ...=3:DeviceConfiguration
DeviceAllocationResult
  results?=1:[DeviceRequestAllocationResult](list=atomic)
  config?=2:[DeviceAllocationConfiguration](list=atomic)
DeviceAttribute
  int?=2:*int64 bool?=3:*bool string?=4:*string version?=5:*string ints?=6:[int64](list=atomic)
  bools?=7:[bool](list=atomic) strings?=8:[string](list=atomic) versions?=9:[string](list=atomic)
DeviceCapacity
  value!=1:resource.Quantity requestPolicy?=2:*CapacityRequestPolicy
DeviceClaim
  requests=1:[DeviceRequest](list=atomic) constraints?=2:[DeviceConstraint](list=atomic)
  config?=3:[DeviceClaimConfiguration](list=atomic)
DeviceClaimConfiguration
  requests?=1:[string](list=atomic) ...=2:DeviceConfiguration
DeviceClass and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:DeviceClassSpec
DeviceClassConfiguration
  ...=1:DeviceConfiguration
DeviceClassSpec
  selectors?=1:[DeviceSelector](list=atomic) config?=2:[DeviceClassConfiguration](list=atomic)
  extendedResourceName?=4:*string
DeviceConfiguration
  opaque?=1:*OpaqueDeviceConfiguration
DeviceConstraint
  requests?=1:[string](list=atomic) matchAttribute?=2:*string~FullyQualifiedName
  distinctAttribute?=3:*string~FullyQualifiedName
DeviceCounterConsumption
  counterSet!=1:string counters?!=2:{Counter}
DeviceRequest
  name!=1:string exactly?=2:*ExactDeviceRequest firstAvailable?=3:[DeviceSubRequest](list=atomic)
DeviceRequestAllocationResult
  request!=1:string driver!=2:string pool!=3:string device!=4:string adminAccess?=5:*bool
  tolerations?=6:[DeviceToleration](list=atomic) bindingConditions?=7:[string](list=atomic)
  bindingFailureConditions?=8:[string](list=atomic) shareID?=9:*string~types.UID
  consumedCapacity?=10:{resource.Quantity}
DeviceSelector
  cel?=1:*CELDeviceSelector
DeviceSubRequest
  name!=1:string deviceClassName!=2:string selectors?=3:[DeviceSelector](list=atomic)
  allocationMode?=4:string~DeviceAllocationMode count?=5:int64
  tolerations?=6:[DeviceToleration](list=atomic) capacity?=7:*CapacityRequirements
DeviceTaint
  key!=1:string value?=2:string effect!=3:string~DeviceTaintEffect timeAdded?=4:*meta.Time
DeviceTaintRule and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:DeviceTaintRuleSpec
  status?=3:DeviceTaintRuleStatus
DeviceTaintRuleSpec
  deviceSelector?=1:*DeviceTaintSelector taint?=2:DeviceTaint
DeviceTaintRuleStatus
  conditions?=1:[meta.Condition](patch=merge:type,list=map:type)
DeviceTaintSelector
  driver?=2:*string pool?=3:*string device?=4:*string
DeviceToleration
  key?=1:string operator?=2:string~DeviceTolerationOperator value?=3:string
  effect?=4:string~DeviceTaintEffect tolerationSeconds?=5:*int64
ExactDeviceRequest
  deviceClassName!=1:string selectors?=2:[DeviceSelector](list=atomic)
  allocationMode?=3:string~DeviceAllocationMode count?=4:int64 adminAccess?=5:*bool
  tolerations?=6:[DeviceToleration](list=atomic) capacity?=7:*CapacityRequirements
NetworkDeviceData
  interfaceName?=1:string ips?=2:[string](list=atomic) hardwareAddress?=3:string
NodeAllocatableResourceMapping
  capacityKey?=1:*string~QualifiedName allocationMultiplier?=2:*resource.Quantity
OpaqueDeviceConfiguration
  driver!=1:string parameters!=2:runtime.RawExtension
ResourceClaim and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:ResourceClaimSpec
  status?=3:ResourceClaimStatus
ResourceClaimConsumerReference
  apiGroup?=1:string resource!=3:string name!=4:string uid!=5:string~types.UID
ResourceClaimSpec
  devices=1:DeviceClaim
ResourceClaimStatus
  allocation?=1:*AllocationResult
  reservedFor?=2:[ResourceClaimConsumerReference](patch=merge:uid,list=map:uid)
  devices?=4:[AllocatedDeviceStatus](list=map:driver+device+pool+shareID)
ResourceClaimTemplate and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:ResourceClaimTemplateSpec
ResourceClaimTemplateSpec
  metadata?=1:meta.ObjectMeta spec!=2:ResourceClaimSpec
ResourcePool
  name!=1:string generation!=2:int64 resourceSliceCount!=3:int64
ResourceSlice and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:ResourceSliceSpec
ResourceSliceSpec
  driver!=1:string pool!=2:ResourcePool nodeName?=3:*string nodeSelector?=4:*core.NodeSelector
  allNodes?=5:*bool devices?=6:[Device](list=atomic) perDeviceNodeSelection?=7:*bool
  sharedCounters?=8:[CounterSet](list=atomic)
`;
