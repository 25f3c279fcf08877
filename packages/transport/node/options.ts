/** Options and dependencies of an Http2Transport. */
import type { Clock, HttpHandler, Logger, Random } from "@quorate/host";
import { type Door, type TlsOptions, type TlsSource, tlsSource } from "@quorate/host/node";
import { idToHex, type raftpb } from "@quorate/proto";
import type { AskMembers, MemberDirectory } from "../src/member-directory.ts";
import type { TransportListener } from "../src/transport.ts";
import type { KeptConnections } from "./kept-connections.ts";

/** An address to listen on: a host and port (0 takes a free one). */
export interface PeerListenAddress {
  /** Empty for a unix socket. */
  readonly host: string;
  /** 0 lets the system choose; 0 for a unix socket. */
  readonly port: number;
  /** The file of a unix socket; undefined for TCP. */
  readonly path?: string | undefined;
  /** SO_REUSEPORT: other processes may listen on the same port. */
  readonly reusePort?: boolean | undefined;
  /** TLS with the transport's `tls`; plain text otherwise. */
  readonly secure: boolean;
  /** The address, where it was opened before; the transport closes it. */
  readonly door?: Door | undefined;
}

export interface Http2TransportOptions {
  readonly selfId: bigint;
  readonly clusterId: bigint;
  /**
   * This member's advertised peer URLs. A member that has not heard of this one yet answers there.
   */
  readonly localUrls: readonly string[];
  readonly listen: readonly PeerListenAddress[];
  /** Needed for secure addresses and https URLs. */
  readonly tls?: TlsOptions | TlsSource | undefined;
  /** Takes peers whatever hosts their certificates name (--peer-skip-client-san-verification). */
  readonly skipClientSanVerification?: boolean | undefined;
  /** The local address of connections to peers; the system chooses by default. */
  readonly localAddress?: string | undefined;
  readonly serverVersion: string;
  readonly minClusterVersion: string;
  /**
   * Messages, and their bytes, that may wait for one peer on one of its two channels; 4096 and 32
   * MiB. One message always fits.
   */
  readonly maxQueuedMessages?: number | undefined;
  readonly maxQueuedBytes?: number | undefined;
  /** The longest message that is taken from a peer; 64 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /**
   * Connections that peers, and others on the peer port, may have open; 1024. One more is closed as
   * it comes.
   */
  readonly maxIncomingConnections?: number | undefined;
  /** Snapshots that are sent, and received, at one time; 8 each. One more fails at once. */
  readonly maxSnapshots?: number | undefined;
  /** Members that wrote to this one before it heard of them (see `Peers`); 32. */
  readonly maxRemotes?: number | undefined;
  /** How long connecting may take, TLS and the peer's consent included; 2 s. */
  readonly dialTimeoutMs?: number | undefined;
  /** How often a link is pinged; 2 s. */
  readonly pingIntervalMs?: number | undefined;
  /** How long a peer may be silent after a ping before its link is given up; 5 s. */
  readonly pingTimeoutMs?: number | undefined;
  /** How long nothing may come in on a connection to this member; 20 s. Peers ping. */
  readonly incomingIdleTimeoutMs?: number | undefined;
  /** How long a snapshot may make no progress before it is given up; 30 s. */
  readonly snapshotStallTimeoutMs?: number | undefined;
  /** How long a peer may take to install a snapshot that it has; 10 min. */
  readonly snapshotInstallTimeoutMs?: number | undefined;
  /** Longest wait before the first, the second and any later new attempt; 20 ms, 50 ms, 1 s. */
  readonly quickRetryMs?: number | undefined;
  readonly leastRetryMs?: number | undefined;
  readonly mostRetryMs?: number | undefined;
  /** Longest body of a plain HTTP request; 1 MiB. */
  readonly maxHttpBodyBytes?: number | undefined;
  /** Speaks etcd's peer protocol alone, as a member of etcd: for tests. */
  readonly isEtcd?: boolean | undefined;
}

/** Why a peer was turned away; "asking": it is not known yet, and other members are being asked. */
export type RefusalReason =
  | "certificate"
  | "cluster-id"
  | "version"
  | "to"
  | "removed"
  | "unknown"
  | "asking"
  | "request";

/** A count of bytes that grows. */
interface ByteCount {
  add(sizeBytes: number): void;
}

/** What goes over the link to a member, frames included. */
export interface Traffic {
  /** Bytes given to the link. */
  readonly sent: ByteCount;
  readonly received: ByteCount;
}

/** Observations of a transport's work: plain calls, ids as they are. Every part may do nothing. */
export interface TransportObserver {
  /**
   * A member became a peer, or is one no more. What was under way with one that is gone may still
   * end after this.
   */
  known(id: bigint, isKnown: boolean): void;
  /** Where bytes to and from a member are counted: a link asks once, when it is made. */
  traffic(id: bigint): Traffic;
  /** Messages of one type that were dropped instead of sent. */
  dropped(id: bigint, type: raftpb.MessageType, count: number): void;
  /** Something from the peer that could not be read, or was not for this member. */
  receiveFailed(id: bigint): void;
  /** The link to a peer came up or went down. */
  active(id: bigint, active: boolean): void;
  roundTrip(id: bigint, ms: number): void;
  snapshotSendStarted(id: bigint): void;
  snapshotSendEnded(id: bigint, taken: boolean, durationMs: number, sizeBytes: number): void;
  snapshotReceiveStarted(id: bigint): void;
  snapshotReceiveEnded(id: bigint, taken: boolean, durationMs: number, sizeBytes: number): void;
  /** A connection or request was turned away; the id is what it claimed, or 0n. */
  refused(id: bigint, reason: RefusalReason): void;
}

export interface Http2TransportDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly listener: TransportListener;
  /** Answers what is not Raft's on the peer port: /members, /version and the like. */
  readonly http: HttpHandler;
  readonly observer?: TransportObserver | undefined;
  /** Whether a member was removed from the cluster: its requests are refused with 410 Gone. */
  readonly isRemoved?: ((id: bigint) => boolean) | undefined;
  /**
   * Asks the members that this one knows for the membership, all at once. Messages of a member that
   * this one has not heard of are taken once the others have reported it; without this they never
   * are.
   */
  readonly askMembers?: AskMembers | undefined;
  /** A peer says that this member was removed from the cluster. May be called often. */
  readonly selfRemoved?: (() => void) | undefined;
  /** Whether members of etcd are spoken to; they are if this is undefined. */
  readonly takesEtcd?: (() => boolean) | undefined;
}

type Filled<T> = { readonly [K in keyof T]-?: Exclude<T[K], undefined> };

/** The options with their defaults filled in. */
export interface ResolvedOptions
  extends Filled<Omit<Http2TransportOptions, "tls" | "localAddress">> {
  readonly tls: TlsSource | undefined;
  readonly localAddress: string | undefined;
}

const MIB = 1024 * 1024;

/**
 * Fills in the defaults; throws RangeError for a bound that is not positive, and Error where TLS is
 * needed and not there.
 */
export function resolveOptions(options: Http2TransportOptions): ResolvedOptions {
  if (options.tls === undefined && options.listen.some((address) => address.secure)) {
    throw new Error("a secure listen address needs TLS options");
  }
  const resolved: ResolvedOptions = {
    ...options,
    tls: options.tls && tlsSource(options.tls),
    localAddress: options.localAddress,
    skipClientSanVerification: options.skipClientSanVerification ?? false,
    maxQueuedMessages: options.maxQueuedMessages ?? 4096,
    maxQueuedBytes: options.maxQueuedBytes ?? 32 * MIB,
    maxMessageBytes: options.maxMessageBytes ?? 64 * MIB,
    maxIncomingConnections: options.maxIncomingConnections ?? 1024,
    maxSnapshots: options.maxSnapshots ?? 8,
    maxRemotes: options.maxRemotes ?? 32,
    dialTimeoutMs: options.dialTimeoutMs ?? 2000,
    pingIntervalMs: options.pingIntervalMs ?? 2000,
    pingTimeoutMs: options.pingTimeoutMs ?? 5000,
    incomingIdleTimeoutMs: options.incomingIdleTimeoutMs ?? 20_000,
    snapshotStallTimeoutMs: options.snapshotStallTimeoutMs ?? 30_000,
    snapshotInstallTimeoutMs: options.snapshotInstallTimeoutMs ?? 600_000,
    quickRetryMs: options.quickRetryMs ?? 20,
    leastRetryMs: options.leastRetryMs ?? 50,
    mostRetryMs: options.mostRetryMs ?? 1000,
    maxHttpBodyBytes: options.maxHttpBodyBytes ?? MIB,
    isEtcd: options.isEtcd ?? false,
  };
  for (const [name, value] of Object.entries(resolved)) {
    if (typeof value === "number" && !(value > 0))
      throw new RangeError(`${name} must be more than 0, got ${value}`);
  }
  return resolved;
}

const UNCOUNTED: ByteCount = { add() {} };

/** No work of anyone's: where no observer was given. */
export const silentObserver: TransportObserver = {
  known() {},
  traffic: () => ({ sent: UNCOUNTED, received: UNCOUNTED }),
  dropped() {},
  receiveFailed() {},
  active() {},
  roundTrip() {},
  snapshotSendStarted() {},
  snapshotSendEnded() {},
  snapshotReceiveStarted() {},
  snapshotReceiveEnded() {},
  refused() {},
};

/** What the parts of a transport share. */
export interface Shared {
  readonly options: ResolvedOptions;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly listener: TransportListener;
  readonly observer: TransportObserver;
  readonly isRemoved: (id: bigint) => boolean;
  readonly directory: MemberDirectory;
  readonly selfRemoved: () => void;
  readonly takesEtcd: () => boolean;
  /** The connections of single messages to members of etcd. */
  readonly etcdPosts: KeptConnections;
}

/** The ids of both ends of a link, as lines of the log have them. */
export function peerFields(
  { options }: Shared,
  peerId: bigint,
): { readonly [name: string]: string } {
  return { "local-member-id": idToHex(options.selfId), "remote-peer-id": idToHex(peerId) };
}
