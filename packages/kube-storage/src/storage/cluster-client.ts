/**
 * The cluster as EtcdStore uses it: reads, conditional writes, watches and leases, each one request
 * (etcd: client/v3/kubernetes). node/cluster.ts implements it over the client library, for a
 * cluster of Quorate or of etcd; testing/ has one in memory.
 *
 * Calls reject with ClusterError where the cluster's error matters to the store, else with the
 * client's own error.
 */
import { CodedError } from "@quorate/proto";
import type { Cancellation } from "../meta/cancellation.ts";

/**
 * "Compacted": the revision is gone. "FutureRevision": not reached yet. "Unavailable": no member
 * responds; the call changed nothing.
 */
export type ClusterErrorCode = "Compacted" | "FutureRevision" | "Unavailable" | "Timeout";

export class ClusterError extends CodedError<ClusterErrorCode> {
  constructor(code: ClusterErrorCode, message: string, cause?: unknown) {
    super("ClusterError", code, message, cause);
  }
}

/** A key with its value. The bytes are views of a response; a holder copies them. */
export interface ClusterRecord {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly lease: bigint;
}

export interface ClusterRangeOptions {
  /** Up to this key, which is not included. */
  readonly end: Uint8Array;
  /** As of this revision; 0 for the latest. */
  readonly revision: number;
  /** 0 for all. */
  readonly limit: number;
  readonly only?: "keys" | "count";
}

export interface ClusterRange {
  readonly records: readonly ClusterRecord[];
  /** Keys in the range, whatever the limit. */
  readonly count: number;
  /** The store's latest revision, not the one that was read at. */
  readonly revision: number;
}

/** A part of a range. */
export interface ClusterPart {
  readonly records: readonly ClusterRecord[];
  /** In the last part alone: what a range has besides its records. */
  readonly end: Pick<ClusterRange, "count" | "revision"> | undefined;
}

/** The outcome of a conditional write. */
export interface ClusterWrite {
  readonly succeeded: boolean;
  /** Of the change, where it succeeded. */
  readonly revision: number;
  /** Where it failed and was asked for: the present record, undefined if there is none. */
  readonly present: ClusterRecord | undefined;
}

export interface ClusterWriteOptions {
  /** The key's mod revision must be this; 0: there must be no such key. */
  readonly expectedRevision: number;
  /** Read the present record where the comparison fails. */
  readonly readOnFailure: boolean;
}

/** A change. */
export interface ClusterEvent {
  readonly type: "put" | "delete";
  /** After a deletion: only key and modRevision are set. */
  readonly record: ClusterRecord;
  readonly previous: ClusterRecord | undefined;
}

/** Changes in the order of their revisions, or a report of progress (without events). */
export interface ClusterWatchResponse {
  readonly events: readonly ClusterEvent[];
  /** All changes up to this revision have been delivered, once these events are. */
  readonly revision: number;
}

export interface ClusterWatchOptions {
  /** Up to this key; undefined for one key. */
  readonly end: Uint8Array | undefined;
  /** The first revision to deliver. */
  readonly revision: number;
  /** The cluster reports its revision at intervals while nothing changes. */
  readonly progressNotify: boolean;
}

/**
 * A watch with the previous record of each change. Iterate once; the next response is fetched when
 * the loop wants it. It continues by itself at another member, without a gap, and rejects with
 * ClusterError "Compacted" where history is missing.
 */
export interface ClusterWatch extends AsyncIterable<ClusterWatchResponse> {
  /** Asks for a report of progress. */
  requestProgress(): void;
  /** Ends the loop. */
  cancel(): void;
}

export interface ClusterClient {
  /** Linearizable. @param key the first key; the only one where `end` is equal to it plus 0 */
  range(key: Uint8Array, options: ClusterRangeOptions): Promise<ClusterRange>;
  /**
   * As `range`, in parts of one revision, so that neither side has all of it in memory at once.
   * @param signal ends the request
   */
  rangeParts(
    key: Uint8Array,
    options: ClusterRangeOptions,
    signal: Cancellation | undefined,
  ): AsyncIterable<ClusterPart>;
  /**
   * Linearizable. The mod revision of each key, in order; 0 where there is no such key.
   * @param keys at most MAX_KEYS_PER_READ
   */
  modRevisions(keys: readonly Uint8Array[]): Promise<readonly number[]>;
  put(
    key: Uint8Array,
    value: Uint8Array,
    /** "keep": the one that the key has; 0n: none. */
    lease: bigint | "keep",
    options: ClusterWriteOptions,
  ): Promise<ClusterWrite>;
  delete(key: Uint8Array, options: ClusterWriteOptions): Promise<ClusterWrite>;
  watch(key: Uint8Array, options: ClusterWatchOptions): ClusterWatch;
  grantLease(ttlSeconds: number): Promise<bigint>;
  /** Removes history: versions that were replaced before `revision`. */
  compact(revision: number): Promise<void>;
}
