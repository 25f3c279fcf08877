/**
 * The settings that a member works with: plain data that never changes. The program's whole
 * configuration (ServerConfig) has them and more.
 */
import type { DiscoveryConfig } from "./discovery-config.ts";
import type { Gates } from "./features.ts";
import type { InitialCluster, MemberUrl } from "./url.ts";

/** History that automatic compaction keeps. */
export type AutoCompaction =
  | { readonly mode: "off" }
  | { readonly mode: "periodic"; readonly retentionMs: number }
  | { readonly mode: "revision"; readonly retentionRevisions: number };

export interface MemberConfig {
  readonly name: string;
  readonly dataDir: string;
  /** Where the write-ahead log is: --wal-dir, or member/wal in the data directory. */
  readonly walDir: string;
  /** member/snap in the data directory. */
  readonly snapDir: string;
  /** member/store in the data directory. */
  readonly storeDir: string;

  readonly advertisePeerUrls: readonly MemberUrl[];
  readonly advertiseClientUrls: readonly MemberUrl[];
  /** The part of the client port's TLS that concerns identity; undefined without TLS. */
  readonly clientTls: { readonly clientCertAuth: boolean } | undefined;

  /** Peer URLs by member name. */
  readonly initialCluster: InitialCluster;
  readonly initialClusterToken: string;
  /** True for --initial-cluster-state=new. Only looked at where there is no log yet. */
  readonly isNewCluster: boolean;
  readonly forceNewCluster: boolean;
  /** The service by which the members of a new cluster find each other; undefined for none. */
  readonly discovery: DiscoveryConfig | undefined;
  /**
   * Where SRV records name the initial cluster, in place of `initialCluster`; undefined if
   * --discovery-srv is not given.
   */
  readonly discoverySrv: { readonly domain: string; readonly serviceName: string } | undefined;
  readonly strictReconfigCheck: boolean;
  readonly maxLearners: number;
  readonly autoPromote: boolean;

  readonly heartbeatIntervalMs: number;
  readonly electionTimeoutMs: number;
  /** The election timeout in whole heartbeat intervals, rounded down. */
  readonly electionTicks: number;
  readonly initialElectionTickAdvance: boolean;
  readonly preVote: boolean;
  /** 0: a slow disk does not move the leadership. */
  readonly slowFsyncHandoverMs: number;

  readonly snapshotCount: number;
  readonly snapshotCatchUpEntries: number;
  readonly maxWalFiles: number;
  readonly maxRequestBytes: number;
  readonly maxTxnOps: number;
  readonly warningApplyDurationMs: number;

  readonly backendBatchIntervalMs: number;
  readonly backendBatchLimit: number;
  /** Undefined means no quota. */
  readonly quotaBackendBytes: number | undefined;
  readonly quotaAutoDisarm: boolean;
  readonly autoCompaction: AutoCompaction;
  readonly compactionBatchLimit: number;
  readonly compactionSleepIntervalMs: number;

  readonly corruptCheckMs: number;
  readonly compactHashCheckMs: number;
  readonly selfHeal: boolean;

  readonly watchProgressNotifyIntervalMs: number;
  /** Proxies that say whom they serve: addresses, and CN=NAME. */
  readonly trustedProxies: ReadonlySet<string>;
  readonly bcryptCost: number;
  readonly authTokenTtlSeconds: number;
  readonly metrics: "basic" | "extensive";
  readonly featureGates: Gates;
}
