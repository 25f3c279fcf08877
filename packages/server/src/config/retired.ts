/**
 * Flags and file keys of earlier etcd releases that steer nothing any more. They are accepted, so
 * that old command lines and files still start a member, and a warning names the reason. A few
 * became feature gates and set those instead.
 */

/** A name that is accepted and has no effect. */
export interface Retired {
  readonly why: string;
  /** True where the flag was a boolean and so takes no value after a space. */
  readonly bool: boolean;
}

function retired(why: string, bool = false): Retired {
  return { why, bool };
}

const v2 = "the v2 store and its proxy are gone since etcd 3.6";
const ancient = "it has been ignored by every etcd of the third version";
const oldLogs = "logs are structured and have one level, --log-level, since etcd 3.5";

/** By flag name, which is also the file key. */
export const retiredFlags: ReadonlyMap<string, Retired> = new Map<string, Retired>([
  ["v2-deprecation", retired(v2)],
  ["experimental-enable-v2v3", retired(v2)],
  ["proxy", retired(v2)],
  ["proxy-failure-wait", retired(v2)],
  ["proxy-refresh-interval", retired(v2)],
  ["proxy-dial-timeout", retired(v2)],
  ["proxy-write-timeout", retired(v2)],
  ["proxy-read-timeout", retired(v2)],
  ["discovery-proxy", retired(v2)],
  [
    "max-snapshots",
    retired(
      "the newest five .snap files are kept; they mark places in the log, and are of a few bytes",
    ),
  ],
  [
    "unsafe-serve-without-auth",
    retired("users and roles are always enforced while authentication is enabled", true),
  ],
  ["debug", retired(oldLogs, true)],
  ["log-output", retired(oldLogs)],
  ["log-package-levels", retired(oldLogs)],
  ["cluster-active-size", retired(ancient)],
  ["cluster-remove-delay", retired(ancient)],
  ["cluster-sync-interval", retired(ancient)],
  ["config", retired(ancient)],
  ["force", retired(ancient)],
  ["max-result-buffer", retired(ancient)],
  ["max-retry-attempts", retired(ancient)],
  ["peer-heartbeat-interval", retired(ancient)],
  ["peer-election-timeout", retired(ancient)],
  ["retry-interval", retired(ancient)],
  ["snapshot", retired(ancient)],
  ["v", retired(ancient)],
  ["vv", retired(ancient)],
]);

/** Boolean flags that became feature gates. */
export const flagsOfGates: ReadonlyMap<string, string> = new Map([
  ["experimental-initial-corrupt-check", "InitialCorruptCheck"],
  ["experimental-compact-hash-check-enabled", "CompactHashCheck"],
  ["experimental-enable-lease-checkpoint", "LeaseCheckpoint"],
  ["experimental-enable-lease-checkpoint-persist", "LeaseCheckpointPersist"],
  ["experimental-txn-mode-write-with-shared-buffer", "TxnModeWriteWithSharedBuffer"],
  ["experimental-stop-grpc-service-on-defrag", "StopGRPCServiceOnDefrag"],
  ["experimental-set-member-localaddr", "SetMemberLocalAddr"],
]);
