/** Parts of member that the tests of other packages look at. */
export type { ApplyLimits } from "../src/apply/applier.ts";
export { StoreExchange } from "../src/apply/store-exchange.ts";
export { BootstrapError } from "../src/bootstrap.ts";
export type { MemberTransport } from "../src/deps.ts";
export type { Secrets } from "../src/identity/access-control.ts";
export { JWT_ALGORITHMS } from "../src/identity/jwt/algorithms.ts";
export {
  MAX_CACHED_TOKENS,
  MAX_RUNNING_VERIFICATIONS,
  MAX_TOKEN_BYTES,
  TokenCache,
  VerifyOnlyError,
} from "../src/identity/jwt/jwt-tokens.ts";
export { ETCD_CLAIMS } from "../src/identity/jwt/settings.ts";
export {
  ADDRESS_FAILURES,
  KEPT_GUESSES,
  MAX_COUNTED_FAILURES,
  USER_FAILURES,
} from "../src/identity/login-limits.ts";
export {
  MAX_SHOWN_PASSWORDS,
  MAX_WAITING_HASHES,
  MAX_WAITING_HASHES_OF_ONE_CLIENT,
  Passwords,
  SHOWN_PASSWORD_MS,
  ShownPasswords,
} from "../src/identity/passwords.ts";
export {
  indexOfToken,
  MAX_TOKENS,
  MAX_TOKENS_OF_ONE_USER,
  SimpleTokens,
  simpleTokenPrefix,
} from "../src/identity/simple-tokens.ts";
export { MIN_RECHECK_MS, TokenEnds } from "../src/identity/token-ends.ts";
export type { TokenUser } from "../src/identity/token-provider.ts";
export { UserAuthority } from "../src/identity/user-authority.ts";
export { MAX_BATCH_LEASES } from "../src/lease/bounds.ts";
export { FAULT_POINTS, type FaultPoint } from "../src/loop/fault-points.ts";
export { MAX_WAITING_PROPOSALS } from "../src/loop/limits.ts";
export { MAX_WAITING_CHANGES } from "../src/membership/reconfiguration.ts";
export { DiscoveryError, discoverByToken } from "../src/membership/token-discovery.ts";
export { memberMetrics } from "../src/metrics/member-metrics.ts";
export type { MetricSources } from "../src/metrics/sources.ts";
export { PUBLISH_RETRY_MS, Publication, type PublicationParts } from "../src/publication.ts";
export { type AnswerLimits, DEFAULT_ANSWER_LIMITS } from "../src/reads/answer-memory.ts";
export { MAX_SLICE_STEPS } from "../src/reads/shared-turns.ts";
export { SLICE_LIMITS, type SliceLimits, Slices } from "../src/reads/slices.ts";
export { StoreRef } from "../src/reads/store-ref.ts";
export {
  SLOW_DISK_MIN_MS,
  SLOW_DISK_REST_MS,
  SLOW_DISK_STUCK_MS,
  SLOW_DISK_WINDOW_MS,
  SlowDisk,
} from "../src/slow-disk.ts";
export { AutoCompactor } from "../src/space/auto-compactor.ts";
export { Compactor } from "../src/space/compactor.ts";
export { Defragmenter } from "../src/space/space.ts";
export { WatchEvent } from "../src/watch/event.ts";
export type { WatchLimits } from "../src/watch/limits.ts";
export { RecentEvents } from "../src/watch/recent-events.ts";
export { WatchHub } from "../src/watch/watch-hub.ts";
export type { StreamClient } from "../src/watch/watcher.ts";
