/** Types of certificates.k8s.io/v1. The format is in ../table-parser.ts. */
export const certificatesTypes = `
CertificateSigningRequest and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:CertificateSigningRequestSpec
  status?=3:CertificateSigningRequestStatus
CertificateSigningRequestCondition
  type!=1:string~RequestConditionType status!=6:string~core.ConditionStatus reason?=2:string
  message?=3:string lastUpdateTime?=4:meta.Time lastTransitionTime?=5:meta.Time
CertificateSigningRequestSpec
  request!=1:bytes signerName!=7:string expirationSeconds?=8:*int32
  usages?=5:[string~KeyUsage](list=atomic) username?=2:string uid?=3:string
  groups?=4:[string](list=atomic) extra?=6:{ExtraValue}
CertificateSigningRequestStatus
  conditions?=1:[CertificateSigningRequestCondition](list=map:type) certificate?=2:bytes
ClusterTrustBundle and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:ClusterTrustBundleSpec
ClusterTrustBundleSpec
  signerName?=1:string trustBundle!=2:string
ExtraValue = [string]
PodCertificateRequest and List
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:PodCertificateRequestSpec
  status?=3:PodCertificateRequestStatus
PodCertificateRequestSpec
  signerName!=1:string podName!=2:string podUID!=3:string~types.UID serviceAccountName!=4:string
  serviceAccountUID!=5:string~types.UID nodeName!=6:string~types.NodeName
  nodeUID!=7:string~types.UID maxExpirationSeconds?=8:*int32 stubPKCS10Request!=12:bytes
  unverifiedUserAnnotations?=11:{string}
PodCertificateRequestStatus
  conditions?=1:[meta.Condition](patch=merge:type,list=map:type) certificateChain?=2:string
  notBefore?=4:*meta.Time beginRefreshAt?=5:*meta.Time notAfter?=6:*meta.Time
`;
