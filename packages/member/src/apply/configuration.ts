/**
 * Changes of the cluster's configuration as they are applied: Raft's voters and learners, the
 * membership in the store, and the links to peers follow each other here.
 */
import type { Clock, Logger } from "@quorate/host";
import type { Counter } from "@quorate/metrics";
import { defined, type ErrorName, errorOf, idToHex, raftpb } from "@quorate/proto";
import { confChangeOf, confStateAfter, type Raft } from "@quorate/raft";
import {
  type AppliedEntry,
  decodeChangeContext,
  InvalidRequestError,
  type Member,
  readConfChange,
  type Store,
} from "@quorate/store";
import type { Transport } from "@quorate/transport";
import type { LeaderView } from "../loop/leader-view.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { Proposals } from "../loop/proposals.ts";
import type { LoopTurns } from "../loop/turns.ts";
import type { Departure } from "../membership/index.ts";
import type { StoreRef } from "../reads/store-ref.ts";

export interface ConfigurationParts {
  readonly memberId: bigint;
  readonly clusterId: bigint;
  /**
   * How long the link to a removed member stays: what was sent to it before lets it apply its own
   * removal, and end by itself.
   */
  readonly disconnectDelayMs: number;
  readonly clock: Clock;
  readonly maxLearners: number;
  /**
   * The members that a joining member has fetched. Until it has applied its own addition, these are
   * its peers, at these URLs: the log that it catches up on may name members that were removed
   * and URLs that were changed since.
   */
  readonly remotes: readonly Member[];
  readonly raft: Raft;
  readonly store: StoreRef;
  readonly transport: Transport;
  readonly logger: Logger;
  readonly turns: LoopTurns;
  readonly lifetime: Lifetime;
  readonly leader: LeaderView;
  readonly proposals: Proposals;
  readonly departure: Departure;
  readonly malformed: MalformedReport;
}

export class Configuration {
  readonly #parts: ConfigurationParts;
  /** Members that were removed a moment ago. */
  readonly #leaving = new Set<bigint>();

  constructor(parts: ConfigurationParts) {
    this.#parts = parts;
  }

  /**
   * Applies an entry that changes the configuration. One that does not fit the membership changes
   * nothing, on every member alike. A member that is left alone by it stands for election.
   */
  apply(entry: raftpb.Entry): void {
    this.#apply(entry);
    const { leader, clock, lifetime } = this.#parts;
    if (leader.leader !== 0n || !this.isAlone) return;
    clock.endOfTurn(() => {
      if (!lifetime.hasEnded) this.campaign();
    });
  }

  /** Stands for election at once. */
  campaign(): void {
    this.#parts.raft.campaign();
    this.#parts.turns.wake();
  }

  #apply(entry: raftpb.Entry): void {
    const { raft, proposals } = this.#parts;
    const store = this.#parts.store.current;
    const change = readConfChange(entry);
    if (change instanceof InvalidRequestError) {
      store.applyConfChange(entry, undefined, raft.confState);
      this.#parts.malformed(entry, change);
      return;
    }
    if ("changes" in change) {
      // Raft's own, which leaves a joint configuration: it changes no member.
      store.applyConfChange(entry, undefined, raft.applyConfChange(change));
      return;
    }
    const refusal = store.membership.refusal(change, this.#parts.maxLearners);
    const confState =
      refusal === undefined ? raft.applyConfChange(changeIn(entry)) : raft.confState;
    store.applyConfChange(entry, refusal === undefined ? change : undefined, confState);
    if (change.id !== 0n) proposals.settle(change.id, resultOf(change, refusal));
    if (refusal === undefined) this.#follow(change, entry.index);
  }

  /**
   * Applies such an entry once more, to a store that lacks it: Raft and the links to peers have
   * followed it already. The store records the configuration as of this entry, which may be older
   * than Raft's.
   */
  replay(store: Store, entry: raftpb.Entry): void {
    const { maxLearners } = this.#parts;
    const { confState } = store.position;
    const change = readConfChange(entry);
    const ofMember =
      change instanceof InvalidRequestError || "changes" in change ? undefined : change;
    const isRefused =
      change instanceof InvalidRequestError ||
      (ofMember !== undefined && store.membership.refusal(ofMember, maxLearners) !== undefined);
    const next = isRefused ? confState : confStateAfter(confState, changeIn(entry));
    store.applyConfChange(entry, isRefused ? undefined : ofMember, next);
  }

  #follow(change: raftpb.ConfChange, index: number): void {
    const { memberId, raft, departure } = this.#parts;
    const id = change.nodeId;
    this.#logChange(change);
    if (change.type === raftpb.ConfChangeType.ConfChangeRemoveNode) {
      if (id === memberId) departure.applied({ index, voters: raft.confState.voters.length });
      else this.#disconnectLater(id);
    }
    this.connectPeers();
  }

  /** A line of the log under etcd's message and fields. */
  #logChange(change: raftpb.ConfChange): void {
    const { memberId, clusterId, logger, store } = this.#parts;
    const fields = { "cluster-id": idToHex(clusterId), "local-member-id": idToHex(memberId) };
    const id = idToHex(change.nodeId);
    if (change.type === raftpb.ConfChangeType.ConfChangeRemoveNode) {
      logger.info("removed member", { ...fields, "removed-remote-peer-id": id });
      return;
    }
    const member = store.current.membership.member(change.nodeId);
    const { peerUrls, isLearner } = defined(member, "the member that was changed");
    if (change.type === raftpb.ConfChangeType.ConfChangeUpdateNode) {
      logger.info("updated member", {
        ...fields,
        "updated-remote-peer-id": id,
        "updated-remote-peer-urls": peerUrls,
        "updated-remote-peer-is-learner": isLearner,
      });
    } else if (decodeChangeContext(change.context).isPromote) {
      logger.info("promote member", { ...fields, "promoted-member-id": id });
    } else {
      logger.info("added member", {
        ...fields,
        "added-peer-id": id,
        "added-peer-peer-urls": peerUrls,
        "added-peer-is-learner": isLearner,
      });
    }
  }

  #disconnectLater(id: bigint): void {
    this.#leaving.add(id);
    this.#parts.clock.after(this.#parts.disconnectDelayMs, () => {
      this.#leaving.delete(id);
      this.connectPeers();
    });
  }

  /**
   * The peers of this member: the others of the membership, or, before it is one of them itself,
   * those that it has fetched.
   */
  #peers(): readonly Member[] {
    const { memberId, remotes, store } = this.#parts;
    const { membership } = store.current;
    return membership.member(memberId) === undefined && remotes.length > 0
      ? remotes
      : membership.members();
  }

  /**
   * Brings the links to peers in line with the membership: at start, after a change, and when a
   * received store is in place.
   */
  connectPeers(): void {
    const { memberId, store, transport } = this.#parts;
    // A removed member keeps its links for the time that it goes on answering; one that was removed
    // before its start makes them.
    if (store.current.membership.isRemoved(memberId) && transport.peers().length > 0) return;
    const members = this.#peers();
    for (const peer of transport.peers()) {
      if (!this.#leaving.has(peer.id) && !members.some((member) => member.id === peer.id))
        transport.removePeer(peer.id);
    }
    for (const member of members) this.#connect(member.id, member.peerUrls);
  }

  #connect(id: bigint, urls: readonly string[]): void {
    const { memberId, transport } = this.#parts;
    if (id === memberId) return;
    if (transport.peers().some((peer) => peer.id === id)) transport.updatePeer(id, urls);
    else transport.addPeer(id, urls);
  }

  /** True if this member is the only voter, and so need not wait for anybody. */
  get isAlone(): boolean {
    const { voters } = this.#parts.raft.confState;
    return voters.length === 1 && voters[0] === this.#parts.memberId;
  }
}

/** The result that the proposer of a change waits for. */
function resultOf({ id }: raftpb.ConfChange, refusal: ErrorName | undefined): AppliedEntry {
  const common = { requestId: id, kind: undefined, response: undefined };
  if (refusal === undefined) return { ...common, error: undefined };
  return { ...common, error: errorOf(refusal) };
}

/** The change in an entry that is known to have one. */
function changeIn(entry: raftpb.Entry): raftpb.ConfChangeV2 {
  return defined(confChangeOf(entry), "the change in the entry");
}

/**
 * What is said of an entry of the log that cannot be decoded: it has changed nothing, here and on
 * every other member.
 */
export type MalformedReport = (entry: raftpb.Entry, error: Error) => void;

/** Counts such entries and logs each with its index. */
export function malformedReport(counter: Counter, logger: Logger): MalformedReport {
  return (entry, error) => {
    counter.add();
    logger.error("applied an entry that does not decode as an error; it changes nothing", {
      index: entry.index,
      term: entry.term,
      "entry-type": entry.type,
      bytes: entry.data.length,
      error: error.message,
    });
  };
}
