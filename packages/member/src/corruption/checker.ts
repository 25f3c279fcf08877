/**
 * Comparing the members' data, by hashes of their history (etcd: server/etcdserver/corrupt.go).
 *
 *     at start      this member with the others, before it takes part           gate
 *                   InitialCorruptCheck
 *     at intervals  the leader with the others, at its newest revision
 *                   --corrupt-check-time
 *     after a compaction, at its revision                                       gate
 *     CompactHashCheck, --compact-hash-check-time
 *
 * Hashes compare only at one revision with one compact revision. A member that differs from a
 * majority of all members is named in a CORRUPT alarm; where there is no majority the alarm has the
 * member id 0. (etcd's periodic check takes the leader to be right.)
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import {
  type AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmType,
  EtcdError,
  idToHex,
} from "@quorate/proto";
import type { Applied, KeyValueHash, Member } from "@quorate/store";
import type { PeerCall } from "@quorate/transport";
import type { StoreRef } from "../reads/store-ref.ts";
import { askHashes, type PeerHash } from "./peer-hash.ts";

/**
 * A hash reads the whole history; etcd allows it the time of a request, which is too short for a
 * large store.
 */
const HASH_TIMEOUT_MS = 60_000;
/** At start a member waits less for the others (etcd: ReqTimeout). */
const INITIAL_TIMEOUT_MS = 7000;

const NO_MAJORITY =
  "members differ, and no hash is that of a majority: the alarm is raised for the whole cluster; " +
  "compare the members by 'quoratectl endpoint hashkv --cluster', stop those that are wrong, then run 'quoratectl alarm disarm'";

/** How a member's history compares with that of a majority of all members. */
export type Standing = "of the majority" | "differs" | "unknown";

export interface CheckerOptions {
  readonly memberId: bigint;
  /** 0: never. */
  readonly everyMs: number;
  /** Undefined: never. */
  readonly afterCompactionMs: number | undefined;
}

export interface CheckerParts {
  readonly store: StoreRef;
  readonly isLeader: () => boolean;
  readonly linearizable: () => Promise<void>;
  readonly propose: (request: AlarmRequest) => Promise<Applied>;
  readonly call: PeerCall;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class CorruptionChecker {
  readonly #options: CheckerOptions;
  readonly #parts: CheckerParts;
  readonly #timers: Timer[] = [];
  #checking = false;
  /** The compact revision on which all members agreed last. */
  #lastChecked = 0;

  constructor(options: CheckerOptions, parts: CheckerParts) {
    this.#options = options;
    this.#parts = parts;
  }

  start(): void {
    const { everyMs, afterCompactionMs, memberId } = this.#options;
    const { clock, logger } = this.#parts;
    if (everyMs > 0) {
      logger.info("enabled corruption checking", {
        "local-member-id": idToHex(memberId),
        interval: `${everyMs}ms`,
      });
      this.#timers.push(clock.every(everyMs, () => this.#run(() => this.periodic())));
    }
    if (afterCompactionMs !== undefined)
      this.#timers.push(
        clock.every(afterCompactionMs, () => this.#run(() => this.afterCompaction())),
      );
  }

  stop(): void {
    for (const timer of this.#timers) timer.cancel();
  }

  /** One check at a time, and only where this member leads. */
  #run(check: () => Promise<void>): void {
    if (this.#checking || !this.#parts.isLeader()) return;
    this.#checking = true;
    check()
      .catch((error: Error) =>
        this.#parts.logger.warn("failed to check hash KV", { error: error.message }),
      )
      .finally(() => {
        this.#checking = false;
      });
  }

  /**
   * Where this member's history stands: it is that of a majority of all members, or not; "unknown"
   * while too few can be compared.
   * @param counts whether this member is one of the majority itself: not if it has what it has from
   * one of the others
   */
  async standing(counts: boolean): Promise<Standing> {
    const { hash, peers } = await this.#ask(0);
    const groups = this.#groups(hash, peers);
    if (!counts) groups.set(hash.hash, (groups.get(hash.hash) ?? []).slice(1));
    const majority = majorityOf(groups, peers.length + 1);
    if (majority === undefined) return "unknown";
    return majority === hash.hash ? "of the majority" : "differs";
  }

  /** Whether what a member has is what a majority of all members have, this one not counted. */
  async isVouchedFor(memberId: bigint): Promise<boolean> {
    const { call } = this.#parts;
    const others = this.#others();
    const newest = await askHashes(call, others, 0, HASH_TIMEOUT_MS);
    // What this member stands at may be wrong, too: the others are asked at a revision that all of
    // them have.
    const revision = Math.min(
      ...newest.flatMap(({ hash }) => (hash === undefined ? [] : [hash.currentRevision])),
    );
    const peers =
      revision === Number.POSITIVE_INFINITY
        ? []
        : await askHashes(call, others, revision, HASH_TIMEOUT_MS);
    const found = peers.find((peer) => peer.memberId === memberId)?.hash;
    if (found === undefined) return false;
    const equal = peers.filter(
      ({ hash }) => hash?.hash === found.hash && hash.compactRevision === found.compactRevision,
    );
    return equal.length > (others.length + 1) / 2;
  }

  /**
   * How many members that answered have another history at the same compact revision. For the start
   * of a member.
   */
  async differing(): Promise<number> {
    const { hash, peers } = await this.#ask(0, INITIAL_TIMEOUT_MS);
    const others = peers.filter(
      (peer) => peer.hash?.compactRevision === hash.compactRevision && peer.hash.hash !== hash.hash,
    );
    for (const peer of others)
      this.#warn("found different hash values from remote peer", hash, peer);
    return others.length;
  }

  async periodic(): Promise<void> {
    const { store, linearizable, logger } = this.#parts;
    const { hash, peers } = await this.#ask(0);
    await linearizable();
    const now = await store.current.mvcc.hashKV(0);
    if (
      now.hash !== hash.hash &&
      now.revision === hash.revision &&
      now.compactRevision === hash.compactRevision
    ) {
      logger.warn("found hash mismatch", {
        revision: now.revision,
        "hash-1": hash.hash,
        "hash-2": now.hash,
      });
      await this.#raise(this.#options.memberId);
      return;
    }
    for (const peer of peers) {
      if (peer.hash === undefined) continue;
      if (peer.hash.currentRevision > now.currentRevision) {
        this.#warn("revision from follower must be less than or equal to leader's", now, peer);
        await this.#raise(peer.memberId);
      } else if (peer.hash.compactRevision > now.compactRevision) {
        this.#warn(
          "compact revision from follower must be less than or equal to leader's",
          now,
          peer,
        );
        await this.#raise(peer.memberId);
      }
    }
    await this.#judge(hash, peers, "same compact revision then hashes must match");
    const checked = peers.filter((peer) => peer.hash !== undefined).length;
    logger.info("finished peer corruption check", { "number-of-peers-checked": checked });
  }

  async afterCompaction(): Promise<void> {
    const { mvcc } = this.#parts.store.current;
    const revision = mvcc.compactedRevision;
    if (revision <= this.#lastChecked || revision !== mvcc.compactRevision) return;
    const { hash, peers } = await this.#ask(revision);
    if (!(await this.#judge(hash, peers, "Detected compaction hash mismatch"))) return;
    // A member that returned no hash for this revision is asked in the next round.
    if (!peers.every((peer) => peer.hash?.compactRevision === hash.compactRevision)) return;
    this.#lastChecked = revision;
    this.#parts.logger.info("finished compaction hash check", { "compact-revision": revision });
  }

  /** This member's hash at a revision (0: the newest), and those of the others at the same. */
  async #ask(
    revision: number,
    timeoutMs = HASH_TIMEOUT_MS,
  ): Promise<{ hash: KeyValueHash; peers: PeerHash[] }> {
    const { store, call, logger } = this.#parts;
    const hash = await store.current.mvcc.hashKV(revision);
    const peers = await askHashes(call, this.#others(), hash.revision, timeoutMs);
    for (const { memberId, error } of peers) {
      if (error !== "")
        logger.warn("cannot fetch hash from remote peer", {
          "remote-peer-id": idToHex(memberId),
          error,
        });
    }
    return { hash, peers };
  }

  #others(): Member[] {
    return this.#parts.store.current.membership
      .members()
      .filter(({ id }) => id !== this.#options.memberId);
  }

  /** Members by their hash, as far as they can be compared. */
  #groups(hash: KeyValueHash, peers: readonly PeerHash[]): Map<number, bigint[]> {
    const groups = new Map([[hash.hash, [this.#options.memberId]]]);
    for (const peer of peers) {
      if (peer.hash?.compactRevision !== hash.compactRevision) continue;
      const group = groups.get(peer.hash.hash);
      if (group === undefined) groups.set(peer.hash.hash, [peer.memberId]);
      else group.push(peer.memberId);
    }
    return groups;
  }

  /** Raises the alarm for members that differ. True if all that could be compared are equal. */
  async #judge(hash: KeyValueHash, peers: readonly PeerHash[], text: string): Promise<boolean> {
    const groups = this.#groups(hash, peers);
    if (groups.size === 1) return true;
    for (const peer of peers)
      if (peer.hash !== undefined && peer.hash.hash !== hash.hash) this.#warn(text, hash, peer);
    const majority = majorityOf(groups, peers.length + 1);
    if (majority === undefined) {
      this.#parts.logger.error(NO_MAJORITY, {
        revision: hash.revision,
        "compact-revision": hash.compactRevision,
      });
      await this.#raise(0n);
      return false;
    }
    for (const [value, ids] of groups)
      if (value !== majority) for (const id of ids) await this.#raise(id);
    return false;
  }

  async #raise(memberId: bigint): Promise<void> {
    const { store, propose } = this.#parts;
    if (store.current.alarms.list(AlarmType.CORRUPT).some((alarm) => alarm.memberId === memberId))
      return;
    try {
      await propose({
        action: AlarmRequest_AlarmAction.ACTIVATE,
        memberID: memberId,
        alarm: AlarmType.CORRUPT,
      });
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      this.#parts.logger.warn("failed to raise an alarm", {
        alarm: "CORRUPT",
        "member-id": idToHex(memberId),
        error: error.message,
      });
    }
  }

  #warn(text: string, ours: KeyValueHash, { memberId, hash }: PeerHash): void {
    this.#parts.logger.warn(text, {
      "local-member-id": idToHex(this.#options.memberId),
      "local-member-revision": ours.revision,
      "local-member-compact-revision": ours.compactRevision,
      "local-member-hash": ours.hash,
      "remote-peer-id": idToHex(memberId),
      "remote-peer-revision": hash?.currentRevision ?? 0,
      "remote-peer-compact-revision": hash?.compactRevision ?? 0,
      "remote-peer-hash": hash?.hash ?? 0,
    });
  }
}

/** The hash that more than half of all `members` have, or undefined. */
function majorityOf(
  groups: ReadonlyMap<number, readonly bigint[]>,
  members: number,
): number | undefined {
  for (const [hash, ids] of groups) if (ids.length > members / 2) return hash;
  return undefined;
}
