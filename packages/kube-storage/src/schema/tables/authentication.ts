/** Types of authentication.k8s.io/v1. The format is in ../table-parser.ts. */
export const authenticationTypes = `
BoundObjectReference
  kind?=1:string apiVersion?=2:string name?=3:string uid?=4:string~types.UID
ExtraValue = [string]
SelfSubjectReview
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta status?=2:SelfSubjectReviewStatus
SelfSubjectReviewStatus
  userInfo?=1:UserInfo
TokenRequest
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec=2:TokenRequestSpec
  status?=3:TokenRequestStatus
TokenRequestSpec
  audiences=1:[string](list=atomic) expirationSeconds=4:*int64
  boundObjectRef=3:*BoundObjectReference
TokenRequestStatus
  token=1:string expirationTimestamp=2:meta.Time
TokenReview
  ...=0:meta.TypeMeta metadata?=1:meta.ObjectMeta spec!=2:TokenReviewSpec
  status?=3:TokenReviewStatus
TokenReviewSpec
  token?!=1:string audiences?=2:[string](list=atomic)
TokenReviewStatus
  authenticated?=1:bool user?=2:UserInfo audiences?=4:[string](list=atomic) error?=3:string
UserInfo
  username?=1:string uid?=2:string groups?=3:[string](list=atomic) extra?=4:{ExtraValue}
`;
