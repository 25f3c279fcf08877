/** Users and roles. */
export { type AuthObserver, AuthState, ROOT, type User } from "./auth-state.ts";
export {
  ANONYMOUS,
  type AttachedKeys,
  type AuthIdentity,
  authorize,
  keysOperation,
  type Operation,
  userVerdict,
} from "./authorize.ts";
export { isBase64 } from "./base64.ts";
export { MAX_TOKEN_ROLE_LENGTH, MAX_TOKEN_ROLES } from "./limits.ts";
export { compareNames } from "./names.ts";
export {
  type LeaseKeys,
  leaseOperations,
  type Operations,
  operationsOf as requestOperations,
  txnOperations,
  verdictInSteps,
  verdictNow,
} from "./request-operations.ts";
