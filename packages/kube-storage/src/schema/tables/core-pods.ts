/** Types of core/v1 for pods. The format is in ../table-parser.ts. */
export const corePodsTypes = `
Affinity
  nodeAffinity?=1:*NodeAffinity podAffinity?=2:*PodAffinity podAntiAffinity?=3:*PodAntiAffinity
AppArmorProfile
  type!=1:string~AppArmorProfileType localhostProfile?=2:*string
Capabilities
  add?=1:[string~Capability](list=atomic) drop?=2:[string~Capability](list=atomic)
ConfigMapEnvSource
  ...=1:LocalObjectReference optional?=2:*bool
ConfigMapKeySelector (mapType=atomic)
  ...=1:LocalObjectReference key!=2:string optional?=3:*bool
Container
  name!=1:string image?=2:string command?=3:[string](list=atomic) args?=4:[string](list=atomic)
  workingDir?=5:string
  ports?=6:[ContainerPort](patch=merge:containerPort,list=map:containerPort+protocol)
  envFrom?=19:[EnvFromSource](list=atomic) env?=7:[EnvVar](patch=merge:name,list=map:name)
  resources?=8:ResourceRequirements resizePolicy?=23:[ContainerResizePolicy](list=atomic)
  restartPolicy?=24:*string~ContainerRestartPolicy
  restartPolicyRules?=25:[ContainerRestartRule](list=atomic)
  volumeMounts?=9:[VolumeMount](patch=merge:mountPath,list=map:mountPath)
  volumeDevices?=21:[VolumeDevice](patch=merge:devicePath,list=map:devicePath)
  livenessProbe?=10:*Probe readinessProbe?=11:*Probe startupProbe?=22:*Probe
  lifecycle?=12:*Lifecycle terminationMessagePath?=13:string
  terminationMessagePolicy?=20:string~TerminationMessagePolicy
  imagePullPolicy?=14:string~PullPolicy securityContext?=15:*SecurityContext stdin?=16:bool
  stdinOnce?=17:bool tty?=18:bool
ContainerPort
  name?=1:string hostPort?=2:int32 containerPort!=3:int32
  protocol?=4:string~Protocol(default="TCP") hostIP?=5:string
ContainerResizePolicy
  resourceName!=1:string~ResourceName restartPolicy!=2:string~ResourceResizeRestartPolicy
ContainerRestartRule
  action?!=1:string~ContainerRestartRuleAction exitCodes?=2:*ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes
  operator?!=1:string~ContainerRestartRuleOnExitCodesOperator values?=2:[int32](list=set)
EnvFromSource
  prefix?=1:string configMapRef?=2:*ConfigMapEnvSource secretRef?=3:*SecretEnvSource
EnvVar
  name!=1:string value?=2:string valueFrom?=3:*EnvVarSource
EnvVarSource
  fieldRef?=1:*ObjectFieldSelector resourceFieldRef?=2:*ResourceFieldSelector
  configMapKeyRef?=3:*ConfigMapKeySelector secretKeyRef?=4:*SecretKeySelector
  fileKeyRef?=5:*FileKeySelector
EphemeralContainer
  ...=1:EphemeralContainerCommon targetContainerName?=2:string
EphemeralContainerCommon
  name!=1:string image?=2:string command?=3:[string](list=atomic) args?=4:[string](list=atomic)
  workingDir?=5:string
  ports?=6:[ContainerPort](patch=merge:containerPort,list=map:containerPort+protocol)
  envFrom?=19:[EnvFromSource](list=atomic) env?=7:[EnvVar](patch=merge:name,list=map:name)
  resources?=8:ResourceRequirements resizePolicy?=23:[ContainerResizePolicy](list=atomic)
  restartPolicy?=24:*string~ContainerRestartPolicy
  restartPolicyRules?=25:[ContainerRestartRule](list=atomic)
  volumeMounts?=9:[VolumeMount](patch=merge:mountPath,list=map:mountPath)
  volumeDevices?=21:[VolumeDevice](patch=merge:devicePath,list=map:devicePath)
  livenessProbe?=10:*Probe readinessProbe?=11:*Probe startupProbe?=22:*Probe
  lifecycle?=12:*Lifecycle terminationMessagePath?=13:string
  terminationMessagePolicy?=20:string~TerminationMessagePolicy
  imagePullPolicy?=14:string~PullPolicy securityContext?=15:*SecurityContext stdin?=16:bool
  stdinOnce?=17:bool tty?=18:bool
ExecAction
  command?=1:[string](list=atomic)
FileKeySelector (mapType=atomic)
  volumeName!=1:string path!=2:string key!=3:string optional?=4:*bool(default=false)
GRPCAction
  port!=1:int32 service=2:*string(default="")
HTTPGetAction
  path?=1:string port!=2:intstr.IntOrString host?=3:string scheme?=4:string~URIScheme
  httpHeaders?=5:[HTTPHeader](list=atomic)
HTTPHeader
  name!=1:string value!=2:string
HostAlias
  ip!=1:string hostnames?=2:[string](list=atomic)
Lifecycle
  postStart?=1:*LifecycleHandler preStop?=2:*LifecycleHandler stopSignal?=3:*string~Signal
LifecycleHandler
  exec?=1:*ExecAction httpGet?=2:*HTTPGetAction tcpSocket?=3:*TCPSocketAction
  sleep?=4:*SleepAction
NodeAffinity
  requiredDuringSchedulingIgnoredDuringExecution?=1:*NodeSelector
  preferredDuringSchedulingIgnoredDuringExecution?=2:[PreferredSchedulingTerm](list=atomic)
PodAffinity
  requiredDuringSchedulingIgnoredDuringExecution?=1:[PodAffinityTerm](list=atomic)
  preferredDuringSchedulingIgnoredDuringExecution?=2:[WeightedPodAffinityTerm](list=atomic)
PodAffinityTerm
  labelSelector?=1:*meta.LabelSelector namespaces?=2:[string](list=atomic) topologyKey!=3:string
  namespaceSelector?=4:*meta.LabelSelector matchLabelKeys?=5:[string](list=atomic)
  mismatchLabelKeys?=6:[string](list=atomic)
PodAntiAffinity
  requiredDuringSchedulingIgnoredDuringExecution?=1:[PodAffinityTerm](list=atomic)
  preferredDuringSchedulingIgnoredDuringExecution?=2:[WeightedPodAffinityTerm](list=atomic)
PodDNSConfig
  nameservers?=1:[string](list=atomic) searches?=2:[string](list=atomic)
  options?=3:[PodDNSConfigOption](list=atomic)
PodDNSConfigOption
  name?=1:string value?=2:*string
PodOS
  name!=1:string~OSName
PodReadinessGate
  conditionType!=1:string~PodConditionType
PodResourceClaim
  name!=1:string resourceClaimName?=3:*string resourceClaimTemplateName?=4:*string
PodSchedulingGate
  name!=1:string
PodSchedulingGroup
  podGroupName?=1:*string
PodSecurityContext
  seLinuxOptions?=1:*SELinuxOptions windowsOptions?=8:*WindowsSecurityContextOptions
  runAsUser?=2:*int64 runAsGroup?=6:*int64 runAsNonRoot?=3:*bool
  supplementalGroups?=4:[int64](list=atomic)
  supplementalGroupsPolicy?=12:*string~SupplementalGroupsPolicy fsGroup?=5:*int64
  sysctls?=7:[Sysctl](list=atomic) fsGroupChangePolicy?=9:*string~PodFSGroupChangePolicy
  seccompProfile?=10:*SeccompProfile appArmorProfile?=11:*AppArmorProfile
  seLinuxChangePolicy?=13:*string~PodSELinuxChangePolicy
PodSpec
  volumes?=1:[Volume](patch=merge+retainKeys:name,list=map:name)
  initContainers?=20:[Container](patch=merge:name,list=map:name)
  containers!=2:[Container](patch=merge:name,list=map:name)
  ephemeralContainers?=34:[EphemeralContainer](patch=merge:name,list=map:name)
  restartPolicy?=3:string~RestartPolicy terminationGracePeriodSeconds?=4:*int64
  activeDeadlineSeconds?=5:*int64 dnsPolicy?=6:string~DNSPolicy
  nodeSelector?=7:{string}(mapType=atomic) serviceAccountName?=8:string serviceAccount?=9:string
  automountServiceAccountToken?=21:*bool nodeName?=10:string hostNetwork?=11:bool hostPID?=12:bool
  hostIPC?=13:bool shareProcessNamespace?=27:*bool securityContext?=14:*PodSecurityContext
  imagePullSecrets?=15:[LocalObjectReference](patch=merge:name,list=map:name) hostname?=16:string
  subdomain?=17:string affinity?=18:*Affinity schedulerName?=19:string
  tolerations?=22:[Toleration](list=atomic)
  hostAliases?=23:[HostAlias](patch=merge:ip,list=map:ip) priorityClassName?=24:string
  priority?=25:*int32 dnsConfig?=26:*PodDNSConfig
  readinessGates?=28:[PodReadinessGate](list=atomic) runtimeClassName?=29:*string
  enableServiceLinks?=30:*bool preemptionPolicy?=31:*string~PreemptionPolicy
  overhead?=32:{resource.Quantity}~ResourceList
  topologySpreadConstraints?=33:[TopologySpreadConstraint](patch=merge:topologyKey,
    list=map:topologyKey+whenUnsatisfiable)
  setHostnameAsFQDN?=35:*bool os?=36:*PodOS hostUsers?=37:*bool
  schedulingGates?=38:[PodSchedulingGate](patch=merge:name,list=map:name)
  resourceClaims?=39:[PodResourceClaim](patch=merge+retainKeys:name,list=map:name)
  resources?=40:*ResourceRequirements hostnameOverride?=41:*string
  schedulingGroup?=43:*PodSchedulingGroup
PodTemplate and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta template?=2:PodTemplateSpec
PodTemplateSpec
  metadata?=1:meta.ObjectMeta spec?=2:PodSpec
PreferredSchedulingTerm
  weight!=1:int32 preference!=2:NodeSelectorTerm
Probe
  ...=1:ProbeHandler initialDelaySeconds?=2:int32 timeoutSeconds?=3:int32 periodSeconds?=4:int32
  successThreshold?=5:int32 failureThreshold?=6:int32 terminationGracePeriodSeconds?=7:*int64
ProbeHandler
  exec?=1:*ExecAction httpGet?=2:*HTTPGetAction tcpSocket?=3:*TCPSocketAction grpc?=4:*GRPCAction
ResourceClaim
  name!=1:string request?=2:string
ResourceRequirements
  limits?=1:{resource.Quantity}~ResourceList requests?=2:{resource.Quantity}~ResourceList
  claims?=3:[ResourceClaim](list=map:name)
SELinuxOptions
  user?=1:string role?=2:string type?=3:string level?=4:string
SeccompProfile
  type!=1:string~SeccompProfileType localhostProfile?=2:*string
SecretEnvSource
  ...=1:LocalObjectReference optional?=2:*bool
SecretKeySelector (mapType=atomic)
  ...=1:LocalObjectReference key!=2:string optional?=3:*bool
SecurityContext
  capabilities?=1:*Capabilities privileged?=2:*bool seLinuxOptions?=3:*SELinuxOptions
  windowsOptions?=10:*WindowsSecurityContextOptions runAsUser?=4:*int64 runAsGroup?=8:*int64
  runAsNonRoot?=5:*bool readOnlyRootFilesystem?=6:*bool allowPrivilegeEscalation?=7:*bool
  procMount?=9:*string~ProcMountType seccompProfile?=11:*SeccompProfile
  appArmorProfile?=12:*AppArmorProfile
SleepAction
  seconds!=1:int64
Sysctl
  name!=1:string value!=2:string
TCPSocketAction
  port!=1:intstr.IntOrString host?=2:string
Toleration
  key?=1:string operator?=2:string~TolerationOperator value?=3:string effect?=4:string~TaintEffect
  tolerationSeconds?=5:*int64
TopologySpreadConstraint
  maxSkew!=1:int32 topologyKey!=2:string whenUnsatisfiable!=3:string~UnsatisfiableConstraintAction
  labelSelector?=4:*meta.LabelSelector minDomains?=5:*int32
  nodeAffinityPolicy?=6:*string~NodeInclusionPolicy
  nodeTaintsPolicy?=7:*string~NodeInclusionPolicy matchLabelKeys?=8:[string](list=atomic)
VolumeDevice
  name!=1:string devicePath!=2:string
VolumeMount
  name!=1:string readOnly?=2:bool recursiveReadOnly?=7:*string~RecursiveReadOnlyMode
  mountPath!=3:string subPath?=4:string mountPropagation?=5:*string~MountPropagationMode
  subPathExpr?=6:string
WeightedPodAffinityTerm
  weight!=1:int32 podAffinityTerm!=2:PodAffinityTerm
WindowsSecurityContextOptions
  gmsaCredentialSpecName?=1:*string gmsaCredentialSpec?=2:*string runAsUserName?=3:*string
  hostProcess?=4:*bool
`;
