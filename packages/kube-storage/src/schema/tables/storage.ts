/** Types of storage.k8s.io/v1. The format is in ../table-parser.ts. */
export const storageTypes = `
CSIDriver and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:CSIDriverSpec
CSIDriverSpec
  attachRequired?=1:*bool podInfoOnMount?=2:*bool
  volumeLifecycleModes?=3:[string~VolumeLifecycleMode](list=set) storageCapacity?=4:*bool
  fsGroupPolicy?=5:*string~FSGroupPolicy tokenRequests?=6:[TokenRequest](list=atomic)
  requiresRepublish?=7:*bool seLinuxMount?=8:*bool nodeAllocatableUpdatePeriodSeconds?=9:*int64
  serviceAccountTokenInSecrets?=10:*bool preventPodSchedulingIfMissing?=11:*bool
CSINode and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:CSINodeSpec
  status?=3:CSINodeStatus
CSINodeDriver
  name!=1:string nodeID!=2:string topologyKeys=3:[string](list=atomic)
  allocatable?=4:*VolumeNodeResources
CSINodeSpec
  drivers!=1:[CSINodeDriver](patch=merge:name,list=map:name)
CSINodeStatus
  storageHealth?=1:[StorageHealth](patch=merge:name,list=map:name)
CSIStorageCapacity and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta nodeTopology?=2:*meta.LabelSelector
  storageClassName!=3:string capacity?=4:*resource.Quantity maximumVolumeSize?=5:*resource.Quantity
StorageClass and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta provisioner!=2:string parameters?=3:{string}
  reclaimPolicy?=4:*string~core.PersistentVolumeReclaimPolicy mountOptions?=5:[string](list=atomic)
  allowVolumeExpansion?=6:*bool volumeBindingMode?=7:*string~VolumeBindingMode
  allowedTopologies?=8:[core.TopologySelectorTerm](list=atomic)
StorageHealth
  name!=1:string healthConditions?=2:[StorageHealthCondition](list=atomic)
StorageHealthCondition
  status!=1:string~StorageHealthStatusType reason!=2:string message?=3:string
  accessMode?=4:*string~core.PersistentVolumeAccessMode
  volumeMode?=5:*string~core.PersistentVolumeMode lastTransitionTime?=6:meta.Time
TokenRequest
  audience!=1:string expirationSeconds?=2:*int64
VolumeAttachment and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:VolumeAttachmentSpec
  status?=3:VolumeAttachmentStatus
VolumeAttachmentSource
  persistentVolumeName?=1:*string inlineVolumeSpec?=2:*core.PersistentVolumeSpec
VolumeAttachmentSpec
  attacher!=1:string source!=2:VolumeAttachmentSource nodeName!=3:string
VolumeAttachmentStatus
  attached!=1:bool attachmentMetadata?=2:{string} attachError?=3:*VolumeError
  detachError?=4:*VolumeError
VolumeAttributesClass and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta driverName!=2:string parameters?=3:{string}
VolumeError
  time?=1:meta.Time message?=2:string errorCode?=3:*int32
VolumeNodeResources
  count?=1:*int32
`;
