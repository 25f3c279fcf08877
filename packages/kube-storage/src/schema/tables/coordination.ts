/** Types of coordination.k8s.io/v1. The format is in ../table-parser.ts. */
export const coordinationTypes = `
Lease and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec?=2:LeaseSpec
LeaseSpec
  holderIdentity?=1:*string leaseDurationSeconds?=2:*int32 acquireTime?=3:*meta.MicroTime
  renewTime?=4:*meta.MicroTime leaseTransitions?=5:*int32
  strategy?=6:*string~CoordinatedLeaseStrategy preferredHolder?=7:*string
`;
