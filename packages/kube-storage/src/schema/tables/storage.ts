/** Types of storage.k8s.io/v1. The format is in ../table-parser.ts. */
export const storageTypes = `
StorageClass and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta provisioner!=2:string parameters?=3:{string}
  reclaimPolicy?=4:*string~core.PersistentVolumeReclaimPolicy
  mountOptions?=5:[string](list=atomic) allowVolumeExpansion?=6:*bool
  volumeBindingMode?=7:*string~VolumeBindingMode
  allowedTopologies?=8:[core.TopologySelectorTerm](list=atomic)
`;
