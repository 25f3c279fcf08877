/** Types of node.k8s.io/v1. The format is in ../table-parser.ts. */
export const nodeTypes = `
Overhead
  podFixed?=1:{resource.Quantity}~ResourceList
RuntimeClass and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta handler!=2:string overhead?=3:*Overhead
  scheduling?=4:*Scheduling
Scheduling
  nodeSelector?=1:{string}(mapType=atomic) tolerations?=2:[core.Toleration](list=atomic)
`;
