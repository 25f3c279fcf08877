/** Types of storagemigration.k8s.io/v1. The format is in ../table-parser.ts. */
export const storagemigrationTypes = `
StorageVersionMigration and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:StorageVersionMigrationSpec
  status?=3:StorageVersionMigrationStatus
StorageVersionMigrationSpec
  resource!=1:meta.GroupResource
StorageVersionMigrationStatus
  conditions?=1:[meta.Condition](patch=merge:type,list=map:type) resourceVersion?=2:string
`;
