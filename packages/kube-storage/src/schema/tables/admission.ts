/** Types of admission.k8s.io/v1. The format is in ../table-parser.ts. */
export const admissionTypes = `
AdmissionRequest
  uid=1:string~types.UID kind=2:meta.GroupVersionKind resource=3:meta.GroupVersionResource
  subResource?=4:string requestKind?=13:*meta.GroupVersionKind
  requestResource?=14:*meta.GroupVersionResource requestSubResource?=15:string name?=5:string
  namespace?=6:string operation=7:string~Operation userInfo=8:authentication.UserInfo
  object?=9:runtime.RawExtension oldObject?=10:runtime.RawExtension dryRun?=11:*bool
  options?=12:runtime.RawExtension
AdmissionResponse
  uid=1:string~types.UID allowed=2:bool status?=3:*meta.Status patch?=4:bytes
  patchType?=5:*string~PatchType auditAnnotations?=6:{string} warnings?=7:[string]
AdmissionReview
  ...=0:meta.TypeMeta request?=1:*AdmissionRequest response?=2:*AdmissionResponse
`;
