/**
 * Changes of the membership that operators request (etcd: EtcdServer.AddMember and its like). Each
 * goes through the log as one configuration change, one at a time, and is decided when it is
 * applied, by every member alike:
 *
 *     add(...) -> checks (strict) -> proposed, again and again until it is applied -> settled with
 *     the members, or the reason against it
 *
 * Ids are never used twice, so proposing an addition, a removal or a promotion again does nothing
 * more than the first time did. An update of URLs is proposed again only where Raft has not taken
 * it.
 */
import { type Clock, LineLimit, type Logger, sleep } from "@quorate/host";
import {
  defined,
  type ErrorName,
  EtcdError,
  errorNameOf,
  errorOf,
  idToHex,
  raftpb,
  toUtf8,
} from "@quorate/proto";
import type { Raft, Status } from "@quorate/raft";
import { encodeChangeContext, encodeMember, type Member, memberId } from "@quorate/store";
import type { PeerCall, Transport } from "@quorate/transport";
import type { LeaderView } from "../loop/leader-view.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { Proposals, RequestIds } from "../loop/proposals.ts";
import type { Reads } from "../loop/reads.ts";
import type { LoopTurns } from "../loop/turns.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { Leadership } from "./leadership.ts";
import {
  type QuorumView,
  type Refusal,
  refuseAdd,
  refusePromote,
  refuseRemove,
} from "./quorum-checks.ts";

/**
 * How much of the leader's log a learner must have to be promoted (etcd: readyPercentThreshold).
 */
const READY_SHARE = 0.9;
/** A change that Raft did not take is proposed again after this long. */
const REFUSED_RETRY_MS = 100;
/** One that it took and that was not applied, after this long: it may be lost with a leader. */
const LOST_RETRY_MS = 1000;
/** Changes that wait at one member at a time. */
export const MAX_WAITING_CHANGES = 64;
/** The path of the peer port under which a leader promotes, with the id in decimal after it. */
export const PROMOTE_PATH = "/members/promote/";

export interface ReconfigurationParts {
  readonly memberId: bigint;
  readonly strict: boolean;
  /** How long a request may take. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly store: StoreRef;
  readonly transport: Pick<Transport, "peers">;
  readonly leader: LeaderView;
  readonly raft: Raft;
  readonly turns: LoopTurns;
  readonly lifetime: Lifetime;
  readonly requestIds: RequestIds;
  readonly proposals: Pick<Proposals, "wait">;
  readonly reads: Pick<Reads, "wait">;
  readonly metrics: MemberMetrics;
  readonly leadership: Leadership;
  readonly call: PeerCall;
}

export class Reconfiguration {
  readonly #parts: ReconfigurationParts;
  #waiting = 0;
  /** A flood of requests that are refused is not a flood of lines. */
  readonly #refusals = new LineLimit();

  constructor(parts: ReconfigurationParts) {
    this.#parts = parts;
  }

  /** All members, by id. */
  members(): Member[] {
    return this.#parts.store.current.membership.members();
  }

  /**
   * Adds a member at these peer URLs. Rejects with EtcdError. @param peerUrls checked and in order
   */
  async add(peerUrls: readonly string[], isLearner: boolean): Promise<Member> {
    const { membership } = this.#parts.store.current;
    let seconds = Math.floor(this.#parts.clock.wallMs() / 1000);
    let id = memberId(peerUrls, "", seconds);
    // Added and removed within the second: ids are never used twice.
    while (membership.isRemoved(id)) id = memberId(peerUrls, "", ++seconds);
    const member: Member = { id, name: "", peerUrls, clientUrls: [], isLearner };
    this.#check("add", id, refuseAdd(this.#view(), isLearner));
    const { ConfChangeAddNode, ConfChangeAddLearnerNode } = raftpb.ConfChangeType;
    await this.#carryOut({
      type: isLearner ? ConfChangeAddLearnerNode : ConfChangeAddNode,
      nodeId: id,
      context: encodeMember(member),
    });
    return member;
  }

  /**
   * Removes a member. Rejects with EtcdError. If it leads, another is made to lead first, so that
   * no client waits for an election.
   */
  async remove(id: bigint): Promise<void> {
    const view = this.#view();
    const voters = view.members.filter((member) => !member.isLearner);
    // Without a voter there would be no cluster: that is refused whatever the flag says.
    if (voters.length === 1 && voters[0]?.id === id) throw errorOf("MemberNotEnoughStarted");
    this.#check("remove", id, refuseRemove(view, id));
    await this.#parts.leadership.depose(id);
    await this.#carryOut({ type: raftpb.ConfChangeType.ConfChangeRemoveNode, nodeId: id });
  }

  /** Replaces a member's peer URLs. Rejects with EtcdError. @param peerUrls checked */
  async update(id: bigint, peerUrls: readonly string[]): Promise<void> {
    const context = encodeMember({ id, name: "", peerUrls, clientUrls: [], isLearner: false });
    await this.#carryOut({ type: raftpb.ConfChangeType.ConfChangeUpdateNode, nodeId: id, context });
  }

  /**
   * Makes a learner a voter; the leader decides whether it is ready, so others forward to it.
   * Rejects with EtcdError.
   */
  async promote(id: bigint): Promise<void> {
    const { clock, timeoutMs } = this.#parts;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    for (;;) {
      try {
        await this.promoteAsLeader(id);
        return;
      } catch (error) {
        if (!(error instanceof EtcdError) || error.code !== "NotLeader") throw error;
      }
      if (await this.#askLeader(id, deadlineMs)) return;
      if (clock.monotonicMs() >= deadlineMs)
        throw errorOf(this.#parts.leader.leader === 0n ? "NoLeader" : "Timeout");
      await sleep(this.#parts.clock, REFUSED_RETRY_MS);
    }
  }

  /** The leader's part of a promotion; NotLeader on any other member. Rejects with EtcdError. */
  async promoteAsLeader(id: bigint): Promise<void> {
    try {
      await this.#promoteHere(id);
      countPromotion(this.#parts.metrics, undefined);
    } catch (error) {
      if (error instanceof EtcdError && error.code !== "NotLeader")
        countPromotion(this.#parts.metrics, error);
      throw error;
    }
  }

  async #promoteHere(id: bigint): Promise<void> {
    this.#checkReady(id, await this.#leaderStatus());
    this.#check("promote", id, refusePromote(this.#view(), id));
    const context = encodeChangeContext({
      member: { id, name: "", peerUrls: [], clientUrls: [], isLearner: false },
      isPromote: true,
    });
    await this.#carryOut({ type: raftpb.ConfChangeType.ConfChangeAddNode, nodeId: id, context });
  }

  async #leaderStatus(): Promise<Status> {
    const { leader, reads, raft } = this.#parts;
    if (!leader.isLeader) throw errorOf("NotLeader");
    await reads.wait();
    const now = raft.status();
    if (now.role !== "leader") throw errorOf("NotLeader");
    return now;
  }

  #checkReady(id: bigint, { progress }: Status): void {
    const learner = progress.find((peer) => peer.id === id);
    if (learner === undefined) throw errorOf("MemberNotFound");
    const own = defined(
      progress.find((peer) => peer.id === this.#parts.memberId),
      "the own progress",
    );
    if (learner.match >= own.match * READY_SHARE) return;
    const { clock, logger } = this.#parts;
    const line = this.#refusals.allow(clock.monotonicMs());
    if (line !== undefined) {
      logger.error("rejecting promote learner: learner is not ready", {
        "member-id": idToHex(id),
        "learner-ready-percent": learner.match / own.match,
        "ready-percent-threshold": READY_SHARE,
        ...line,
      });
    }
    throw errorOf("MemberLearnerNotReady");
  }

  /**
   * True if the leader has promoted the member, false if the request did not reach it. Throws the
   * leader's reason for a refusal.
   */
  async #askLeader(id: bigint, deadlineMs: number): Promise<boolean> {
    const { call, clock, leader } = this.#parts;
    for (const url of leader.peerUrls() ?? []) {
      const leftMs = deadlineMs - clock.monotonicMs();
      if (leftMs <= 0) return false;
      let answer: Awaited<ReturnType<PeerCall>>;
      try {
        answer = await call(url, `${PROMOTE_PATH}${id}`, new Uint8Array(0), leftMs);
      } catch {
        continue;
      }
      if (answer.status === 200) return true;
      const reason = errorNameOf(toUtf8(answer.body).trimEnd());
      if (reason !== undefined && !RETRIED.has(reason)) throw errorOf(reason);
    }
    return false;
  }

  // --- Through the log ---

  async #carryOut(
    fields: Pick<raftpb.ConfChange, "type" | "nodeId"> & { context?: Uint8Array },
  ): Promise<void> {
    if (this.#waiting >= MAX_WAITING_CHANGES) throw errorOf("TooManyRequests");
    this.#waiting++;
    const { logger, requestIds, proposals } = this.#parts;
    const change = raftpb.ConfChange.create({ ...fields, id: requestIds.next() });
    const pending = { isOver: false };
    try {
      const applied = proposals.wait(change.id);
      this.#keepProposing(change, pending);
      const { error } = await applied;
      if (error !== undefined) throw error;
      logger.info("applied a configuration change through raft", {
        "local-member-id": idToHex(this.#parts.memberId),
        "raft-conf-change": nameOf(change.type),
        "raft-conf-change-node-id": idToHex(change.nodeId),
      });
    } finally {
      pending.isOver = true;
      this.#waiting--;
    }
  }

  /**
   * Proposes until it is over: Raft takes one change at a time, and what it took may be lost with a
   * leader.
   */
  #keepProposing(change: raftpb.ConfChange, pending: { readonly isOver: boolean }): void {
    if (pending.isOver) return;
    const taken = this.#propose(change);
    if (taken && change.type === raftpb.ConfChangeType.ConfChangeUpdateNode) return;
    this.#parts.clock.after(taken ? LOST_RETRY_MS : REFUSED_RETRY_MS, () =>
      this.#keepProposing(change, pending),
    );
  }

  /** Whether Raft has taken the change. */
  #propose(change: raftpb.ConfChange): boolean {
    const { raft, turns, lifetime } = this.#parts;
    if (lifetime.hasEnded) return false;
    const result = raft.proposeConfChange(change);
    turns.wake();
    return result === "accepted";
  }

  // --- Checks ---

  #view(): QuorumView {
    const { clock, memberId: selfId, transport, store } = this.#parts;
    return {
      selfId,
      nowMs: clock.monotonicMs(),
      members: store.current.membership.members(),
      peers: transport.peers(),
    };
  }

  #check(what: "add" | "remove" | "promote", id: bigint, refusal: Refusal): void {
    if (!this.#parts.strict || refusal === undefined) return;
    const reason =
      refusal === "Unhealthy"
        ? "local member has not been connected to enough peers, reconfigure breaks active quorum"
        : "not enough healthy members";
    const error = errorOf(refusal);
    const { clock, logger, memberId: selfId } = this.#parts;
    const line = this.#refusals.allow(clock.monotonicMs());
    if (line !== undefined) {
      logger.warn(`rejecting member ${what} request; ${reason}`, {
        "local-member-id": idToHex(selfId),
        [`requested-member-${what}`]: idToHex(id),
        error: error.message,
        ...line,
      });
    }
    throw error;
  }
}

/** Answers of a leader that may be others a moment later: it is, or was, on its way out. */
const RETRIED: ReadonlySet<ErrorName> = new Set<ErrorName>([
  "NotLeader",
  "NoLeader",
  "LeaderChanged",
  "Stopped",
  "Timeout",
]);

/** Counts a learner's promotion, or the leader's refusal. */
function countPromotion(metrics: MemberMetrics, error: EtcdError | undefined): void {
  if (error === undefined) metrics.learnerPromoteSuccesses.add();
  else metrics.learnerPromoteFailures.with(error.message).add();
}

function nameOf(type: raftpb.ConfChangeType): string {
  return (
    Object.entries(raftpb.ConfChangeType).find(([, value]) => value === type)?.[0] ?? String(type)
  );
}
