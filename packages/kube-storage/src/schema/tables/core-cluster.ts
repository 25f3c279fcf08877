/** Types of core/v1 for nodes, services and quotas. The format is in ../table-parser.ts. */
export const coreClusterTypes = `
AttachedVolume
  name!=1:string~UniqueVolumeName devicePath!=2:string
Binding
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta target!=2:ObjectReference
ClientIPConfig
  timeoutSeconds?=1:*int32
ComponentCondition
  type!=1:string~ComponentConditionType status!=2:string~ConditionStatus message?=3:string
  error?=4:string
ComponentStatus and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta
  conditions?=2:[ComponentCondition](patch=merge:type,list=map:type)
ConfigMapNodeConfigSource
  namespace!=1:string name!=2:string uid?=3:string~types.UID resourceVersion?=4:string
  kubeletConfigKey!=5:string
ContainerExtendedResourceRequest
  containerName!=1:string resourceName!=2:string requestName!=3:string
ContainerImage
  names=1:[string](list=atomic) sizeBytes?=2:int64
ContainerState
  waiting?=1:*ContainerStateWaiting running?=2:*ContainerStateRunning
  terminated?=3:*ContainerStateTerminated
ContainerStateRunning
  startedAt?=1:meta.Time
ContainerStateTerminated
  exitCode!=1:int32 signal?=2:int32 reason?=3:string message?=4:string startedAt?=5:meta.Time
  finishedAt?=6:meta.Time containerID?=7:string
ContainerStateWaiting
  reason?=1:string message?=2:string
ContainerStatus
  name!=1:string state?=2:ContainerState lastState?=3:ContainerState ready!=4:bool
  restartCount!=5:int32 image!=6:string imageID!=7:string containerID?=8:string started?=9:*bool
  allocatedResources?=10:{resource.Quantity}~ResourceList resources?=11:*ResourceRequirements
  volumeMounts?=12:[VolumeMountStatus](patch=merge:mountPath,list=map:mountPath)
  user?=13:*ContainerUser
  allocatedResourcesStatus?=14:[ResourceStatus](patch=merge:name,list=map:name)
  stopSignal?=15:*string~Signal
ContainerUser
  linux?=1:*LinuxContainerUser
DaemonEndpoint
  Port!=1:int32
EndpointAddress (mapType=atomic)
  ip!=1:string hostname?=3:string nodeName?=4:*string targetRef?=2:*ObjectReference
EndpointPort (mapType=atomic)
  name?=1:string port!=2:int32 protocol?=3:string~Protocol appProtocol?=4:*string
EndpointSubset
  addresses?=1:[EndpointAddress](list=atomic) notReadyAddresses?=2:[EndpointAddress](list=atomic)
  ports?=3:[EndpointPort](list=atomic)
Endpoints and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta subsets?=2:[EndpointSubset](list=atomic)
HostIP
  ip!=1:string
ImageVolumeStatus
  imageRef?!=1:string
LimitRange and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:LimitRangeSpec
LimitRangeItem
  type!=1:string~LimitType max?=2:{resource.Quantity}~ResourceList
  min?=3:{resource.Quantity}~ResourceList default?=4:{resource.Quantity}~ResourceList
  defaultRequest?=5:{resource.Quantity}~ResourceList
  maxLimitRequestRatio?=6:{resource.Quantity}~ResourceList
LimitRangeSpec
  limits!=1:[LimitRangeItem](list=atomic)
LinuxContainerUser
  uid!=1:int64 gid!=2:int64 supplementalGroups?=3:[int64](list=atomic)
LoadBalancerIngress
  ip?=1:string hostname?=2:string ipMode?=3:*string~LoadBalancerIPMode
  ports?=4:[PortStatus](list=atomic)
LoadBalancerStatus
  ingress?=1:[LoadBalancerIngress](list=atomic)
ModifyVolumeStatus
  targetVolumeAttributesClassName?=1:string
  status!=2:string~PersistentVolumeClaimModifyVolumeStatus
Node and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:NodeSpec status?=3:NodeStatus
NodeAddress
  type!=1:string~NodeAddressType address!=2:string
NodeAllocatableResourceClaimStatus
  resourceClaimName!=1:string containers?=2:[string](list=set) resources!=3:{resource.Quantity}
NodeCondition
  type!=1:string~NodeConditionType status!=2:string~ConditionStatus lastHeartbeatTime?=3:meta.Time
  lastTransitionTime?=4:meta.Time reason?=5:string message?=6:string
NodeConfigSource
  configMap?=2:*ConfigMapNodeConfigSource
NodeConfigStatus
  assigned?=1:*NodeConfigSource active?=2:*NodeConfigSource lastKnownGood?=3:*NodeConfigSource
  error?=4:string
NodeDaemonEndpoints
  kubeletEndpoint?=1:DaemonEndpoint
NodeFeatures
  supplementalGroupsPolicy?=1:*bool
NodeProxyOptions
  ...=0:meta.TypeMeta path?=1:string
NodeRuntimeHandler
  name=1:string features?=2:*NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures
  recursiveReadOnlyMounts?=1:*bool userNamespaces?=2:*bool
NodeSpec
  podCIDR?=1:string podCIDRs?=7:[string](patch=merge,list=set) providerID?=3:string
  unschedulable?=4:bool taints?=5:[Taint](list=atomic) configSource?=6:*NodeConfigSource
  externalID?=2:string
NodeStatus
  capacity?=1:{resource.Quantity}~ResourceList allocatable?=2:{resource.Quantity}~ResourceList
  phase?=3:string~NodePhase conditions?=4:[NodeCondition](patch=merge:type,list=map:type)
  addresses?=5:[NodeAddress](patch=merge:type,list=map:type)
  daemonEndpoints?=6:NodeDaemonEndpoints nodeInfo?=7:NodeSystemInfo
  images?=8:[ContainerImage](list=atomic) volumesInUse?=9:[string~UniqueVolumeName](list=atomic)
  volumesAttached?=10:[AttachedVolume](list=atomic) config?=11:*NodeConfigStatus
  runtimeHandlers?=12:[NodeRuntimeHandler](list=atomic) features?=13:*NodeFeatures
  declaredFeatures?=14:[string](list=atomic)
NodeSwapStatus
  capacity?=1:*int64
NodeSystemInfo
  machineID!=1:string systemUUID!=2:string bootID!=3:string kernelVersion!=4:string
  osImage!=5:string containerRuntimeVersion!=6:string kubeletVersion!=7:string
  kubeProxyVersion!=8:string operatingSystem!=9:string architecture!=10:string
  swap?=11:*NodeSwapStatus
PersistentVolume and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:PersistentVolumeSpec
  status?=3:PersistentVolumeStatus
PersistentVolumeClaim and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:PersistentVolumeClaimSpec
  status?=3:PersistentVolumeClaimStatus
PersistentVolumeClaimCondition
  type!=1:string~PersistentVolumeClaimConditionType status!=2:string~ConditionStatus
  lastProbeTime?=3:meta.Time lastTransitionTime?=4:meta.Time reason?=5:string message?=6:string
PersistentVolumeClaimStatus
  phase?=1:string~PersistentVolumeClaimPhase
  accessModes?=2:[string~PersistentVolumeAccessMode](list=atomic)
  capacity?=3:{resource.Quantity}~ResourceList
  conditions?=4:[PersistentVolumeClaimCondition](patch=merge:type,list=map:type)
  allocatedResources?=5:{resource.Quantity}~ResourceList
  allocatedResourceStatuses?=7:{string~ClaimResourceStatus}(mapType=granular)
  currentVolumeAttributesClassName?=8:*string modifyVolumeStatus?=9:*ModifyVolumeStatus
PersistentVolumeStatus
  phase?=1:string~PersistentVolumePhase message?=2:string reason?=3:string
  lastPhaseTransitionTime?=4:*meta.Time
Pod and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:PodSpec status?=3:PodStatus
PodAttachOptions
  ...=0:meta.TypeMeta stdin?=1:bool stdout?=2:bool stderr?=3:bool tty?=4:bool container?=5:string
PodCondition
  type!=1:string~PodConditionType observedGeneration?=7:int64 status!=2:string~ConditionStatus
  lastProbeTime?=3:meta.Time lastTransitionTime?=4:meta.Time reason?=5:string message?=6:string
PodExecOptions
  ...=0:meta.TypeMeta stdin?=1:bool stdout?=2:bool stderr?=3:bool tty?=4:bool container?=5:string
  command=6:[string]
PodExtendedResourceClaimStatus
  requestMappings!=1:[ContainerExtendedResourceRequest](list=atomic) resourceClaimName!=2:string
PodIP
  ip!=1:string
PodPortForwardOptions
  ...=0:meta.TypeMeta ports?=1:[int32]
PodProxyOptions
  ...=0:meta.TypeMeta path?=1:string
PodResourceClaimStatus
  name!=1:string resourceClaimName?=2:*string
PodStatus
  observedGeneration?=17:int64 phase?=1:string~PodPhase
  conditions?=2:[PodCondition](patch=merge:type,list=map:type) message?=3:string reason?=4:string
  nominatedNodeName?=11:string hostIP?=5:string hostIPs?=16:[HostIP](patch=merge:ip,list=atomic)
  podIP?=6:string podIPs?=12:[PodIP](patch=merge:ip,list=map:ip) startTime?=7:*meta.Time
  initContainerStatuses?=10:[ContainerStatus](list=atomic)
  containerStatuses?=8:[ContainerStatus](list=atomic) qosClass?=9:string~PodQOSClass
  ephemeralContainerStatuses?=13:[ContainerStatus](list=atomic) resize?=14:string~PodResizeStatus
  resourceClaimStatuses?=15:[PodResourceClaimStatus](patch=merge+retainKeys:name,list=map:name)
  extendedResourceClaimStatus?=18:*PodExtendedResourceClaimStatus
  allocatedResources?=19:{resource.Quantity}~ResourceList resources?=20:*ResourceRequirements
  nodeAllocatableResourceClaimStatuses?=21:[NodeAllocatableResourceClaimStatus](list=atomic)
PortStatus
  port!=1:int32 protocol!=2:string~Protocol error?=3:*string
RangeAllocation
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta range!=2:string data!=3:bytes
ReplicationController and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:ReplicationControllerSpec
  status?=3:ReplicationControllerStatus
ReplicationControllerCondition
  type!=1:string~ReplicationControllerConditionType status!=2:string~ConditionStatus
  lastTransitionTime?=3:meta.Time reason?=4:string message?=5:string
ReplicationControllerSpec
  replicas?=1:*int32(default=1) minReadySeconds?=4:int32(default=0)
  selector?=2:{string}(mapType=atomic) template?=3:*PodTemplateSpec
ReplicationControllerStatus
  replicas!=1:int32 fullyLabeledReplicas?=2:int32 readyReplicas?=4:int32
  availableReplicas?=5:int32 observedGeneration?=3:int64
  conditions?=6:[ReplicationControllerCondition](patch=merge:type,list=map:type)
ResourceHealth
  resourceID!=1:string~ResourceID health?=2:string~ResourceHealthStatus message?=6:*string
ResourceQuota and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:ResourceQuotaSpec
  status?=3:ResourceQuotaStatus
ResourceQuotaSpec
  hard?=1:{resource.Quantity}~ResourceList scopes?=2:[string~ResourceQuotaScope](list=atomic)
  scopeSelector?=3:*ScopeSelector
ResourceQuotaStatus
  hard?=1:{resource.Quantity}~ResourceList used?=2:{resource.Quantity}~ResourceList
ResourceStatus
  name!=1:string~ResourceName resources?=2:[ResourceHealth](list=map:resourceID)
ScopeSelector (mapType=atomic)
  matchExpressions?=1:[ScopedResourceSelectorRequirement](list=atomic)
ScopedResourceSelectorRequirement
  scopeName!=1:string~ResourceQuotaScope operator!=2:string~ScopeSelectorOperator
  values?=3:[string](list=atomic)
Service and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:ServiceSpec status?=3:ServiceStatus
ServicePort
  name?=1:string protocol?=2:string~Protocol(default="TCP") appProtocol?=6:*string port!=3:int32
  targetPort?=4:intstr.IntOrString nodePort?=5:int32
ServiceProxyOptions
  ...=0:meta.TypeMeta path?=1:string
ServiceSpec
  ports?=1:[ServicePort](patch=merge:port,list=map:port+protocol)
  selector?=2:{string}(mapType=atomic) clusterIP?=3:string clusterIPs?=18:[string](list=atomic)
  type?=4:string~ServiceType externalIPs?=5:[string](list=atomic)
  sessionAffinity?=7:string~ServiceAffinity loadBalancerIP?=8:string
  loadBalancerSourceRanges?=9:[string](list=atomic) externalName?=10:string
  externalTrafficPolicy?=11:string~ServiceExternalTrafficPolicy healthCheckNodePort?=12:int32
  publishNotReadyAddresses?=13:bool sessionAffinityConfig?=14:*SessionAffinityConfig
  ipFamilies?=19:[string~IPFamily](list=atomic) ipFamilyPolicy?=17:*string~IPFamilyPolicy
  allocateLoadBalancerNodePorts?=20:*bool loadBalancerClass?=21:*string
  internalTrafficPolicy?=22:*string~ServiceInternalTrafficPolicy trafficDistribution?=23:*string
ServiceStatus
  loadBalancer?=1:LoadBalancerStatus
  conditions?=2:[meta.Condition](patch=merge:type,list=map:type)
SessionAffinityConfig
  clientIP?=1:*ClientIPConfig
Taint
  key!=1:string value?=2:string effect!=3:string~TaintEffect timeAdded?=4:*meta.Time
TopologySelectorLabelRequirement
  key!=1:string values!=2:[string](list=atomic)
TopologySelectorTerm (mapType=atomic)
  matchLabelExpressions?=1:[TopologySelectorLabelRequirement](list=atomic)
VolumeMountStatus
  name!=1:string mountPath!=2:string readOnly?=3:bool
  recursiveReadOnly?=4:*string~RecursiveReadOnlyMode volumeStatus?=5:*VolumeStatus
VolumeStatus
  image?=1:*ImageVolumeStatus
`;
