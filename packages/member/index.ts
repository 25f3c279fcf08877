/** One replicated member without any wire: its ways in are propose, read, watch and operate. */
export { MEMBER_BOUNDS, type MemberBounds } from "./src/bounds.ts";
export { verifyBootstrap, verifyJoin } from "./src/config/bootstrap.ts";
export { type Budgets, budgetsFor } from "./src/config/budgets.ts";
export type { DiscoveryConfig } from "./src/config/discovery-config.ts";
export { ConfigError, checked, contradiction } from "./src/config/errors.ts";
export { type Gates, gates, parseGates, stageGates } from "./src/config/features.ts";
export { detectForeignData } from "./src/config/foreign-data.ts";
export type { AutoCompaction, MemberConfig } from "./src/config/member-config.ts";
export {
  checkBindUrls,
  checkHostUrls,
  type InitialCluster,
  inferLocalAddress,
  initialClusterText,
  isIpAddress,
  listenHost,
  type MemberUrl,
  parseInitialCluster,
  parseUrl,
  parseUrls,
  urlsText,
} from "./src/config/url.ts";
export {
  inRange,
  parseBool,
  parseDurationMs,
  parseInteger,
  parseList,
  parseUniqueList,
  ValueError,
} from "./src/config/values.ts";
export {
  clusterVersionOf,
  MIN_CLUSTER_VERSION,
  majorMinor,
  QUORATE_VERSION,
  SERVER_VERSION,
} from "./src/config/version.ts";
export { askHashes } from "./src/corruption/index.ts";
export type { MemberDeps, MemberTransport, TransportRequest } from "./src/deps.ts";
export { AuthChanges } from "./src/identity/auth-changes.ts";
export type { Access, Authority } from "./src/identity/authority.ts";
export {
  asMembersOwn,
  type Caller,
  callerOf,
  MEMBER_CALLER,
  uncancelled,
} from "./src/identity/caller.ts";
export {
  algorithmsOf,
  type JwtAlgorithm,
  jwtAlgorithm,
  type KeyFamily,
  keyFamily,
} from "./src/identity/jwt/algorithms.ts";
export { jwtProvider } from "./src/identity/jwt/jwt-provider.ts";
export { JwtTokens } from "./src/identity/jwt/jwt-tokens.ts";
export {
  type JwtKeys,
  MAX_VERIFICATION_KEYS,
  type VerificationKey,
} from "./src/identity/jwt/key-set.ts";
export {
  type AuthTokenKind,
  expectsProvider,
  type JwtClaimRules,
  type JwtSettings,
  MAX_CLOCK_SKEW_MS,
  parseAuthToken,
} from "./src/identity/jwt/settings.ts";
export { LoginLimits } from "./src/identity/login-limits.ts";
export { NO_PASSWORD_TEXT, TOO_MANY_FAILURES } from "./src/identity/login-texts.ts";
export { MAX_RUNNING_HASHES, type PasswordHasher } from "./src/identity/passwords.ts";
export { RPC_RULES, type RpcRule } from "./src/identity/rpc-rules.ts";
export type { TokenProvider } from "./src/identity/token-provider.ts";
export type { CountedLease } from "./src/lease/epoch.ts";
export type { KeepAliveStream } from "./src/lease/leases.ts";
export type { Proposer, Reader } from "./src/loop/deliveries.ts";
export { logMemoryFor } from "./src/loop/limits.ts";
export { Member } from "./src/member.ts";
export { featureEndpoints } from "./src/membership/features.ts";
export { checkedUrls, countUrls } from "./src/membership/member-urls.ts";
export { PROMOTE_PATH } from "./src/membership/reconfiguration.ts";
export type { Registry, RegistryRecord } from "./src/membership/token-discovery.ts";
export { downgradeTargetOf, minorVersion } from "./src/membership/versions.ts";
export { AUTH_READINGS } from "./src/metrics/auth-table.ts";
export type { MemberMetrics } from "./src/metrics/member-metrics.ts";
export type { MemberObserver } from "./src/observer.ts";
export { answerLimitsFor } from "./src/reads/answer-memory.ts";
export { FairLimiter } from "./src/reads/fair-limiter.ts";
export { pinned } from "./src/reads/pinned.ts";
export { SharedTurns } from "./src/reads/shared-turns.ts";
export type { SliceCaller, SliceTask } from "./src/reads/slice-task.ts";
export { alarmName, alarmText } from "./src/space/space.ts";
export { ClientBudget } from "./src/watch/client-budget.ts";
export { fragments, headerField, idField, responsePieces } from "./src/watch/event.ts";
export { WATCH_BYTES, WATCH_KEY_FACTOR, WATCH_LIMITS } from "./src/watch/limits.ts";
export { WatchStream } from "./src/watch/watch-stream.ts";
