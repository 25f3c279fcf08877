/**
 * The machine behind Raft's public interface (raft.ts): a replica in a role, and the rules by which
 * ticks, messages and votes move it to another one.
 *
 *                 timeout                majority            majority
 *     follower -------------> pre-candidate -----> candidate -------> leader
 *        ^  (without preVote, at once a candidate)     |                 |
 *        |                                             |                 |
 *        +--- higher term, leader of this term, lost --+-- no quorum, ---+
 *                                                          removed
 *
 * Each role is an object with the state that only this role has. A message passes the checks of
 * step() in this order: sender and kind, possible at all, term and lease; then the role handles it.
 */
import { equals, idToHex, raftpb } from "@quorate/proto";
import { confStateAfter, isMember, voterIds } from "./confchange.ts";
import { type InitialState, MAX_TERM, type RaftConfig, type Role } from "./interface.ts";
import { violated } from "./invariants.ts";
import { Leader } from "./leader.ts";
import {
  CAMPAIGN_TRANSFER,
  impossible,
  isFromLeader,
  isLocalMessage,
  isResponse,
  isTermless,
  messageName,
  newMessage,
} from "./message.ts";
import { Replica } from "./replica.ts";
import { jointVote, type VoteResult } from "./tracker.ts";

const {
  MsgApp,
  MsgHeartbeat,
  MsgPreVote,
  MsgPreVoteResp,
  MsgProp,
  MsgReadIndex,
  MsgReadIndexResp,
  MsgSnap,
  MsgTimeoutNow,
  MsgTransferLeader,
  MsgVote,
  MsgVoteResp,
} = raftpb.MessageType;

/** The state of a follower. */
interface Follower {
  readonly role: "follower";
  /** 0n if unknown. */
  leader: bigint;
}

export type CandidateRole = "pre-candidate" | "candidate";

/** A candidacy, and the votes for it. A pre-candidate asks for votes without raising the term. */
export class Campaign {
  readonly role: CandidateRole;
  /** The leader is unknown. */
  readonly leader = 0n;
  /** The machine's vote for itself waits for a Ready: it counts once that is durable. */
  ownVoteDue = true;
  readonly #replica: Replica;
  readonly #votes: Map<bigint, boolean>;

  constructor(replica: Replica, role: CandidateRole) {
    this.#replica = replica;
    this.role = role;
    this.#votes = new Map();
  }

  /**
   * Requests the votes of the other members. @param transfer the leader has ordered the campaign:
   * leases do not prevent it
   */
  requestVotes(transfer: boolean): void {
    const replica = this.#replica;
    const asking = this.role === "pre-candidate";
    for (const id of voterIds(replica.conf)) {
      if (id === replica.id) continue;
      const request = replica.message(asking ? MsgPreVote : MsgVote, id);
      // A pre-vote names the term that the campaign would raise to.
      if (asking) request.term = replica.term + 1;
      request.index = replica.lastIndex;
      request.logTerm = replica.log.lastTerm;
      if (transfer) request.context = CAMPAIGN_TRANSFER;
      // A real vote is requested only after this machine's own vote and log are durable. A crash
      // could otherwise lose them, and a vote granted to this campaign could count in a later one
      // of the same term with a shorter log.
      if (asking) replica.send(request);
      else replica.sendAfterSync(request);
    }
  }

  /** Records a vote, of which each voter's first counts, and returns the result so far. */
  count(from: bigint, granted: boolean): VoteResult {
    const replica = this.#replica;
    if (!this.#votes.has(from)) this.#votes.set(from, granted);
    const result = jointVote(replica.conf.voters, replica.conf.votersOutgoing, this.#votes);
    if (replica.hasLogger) {
      replica.note("debug", granted ? "got a vote" : "was refused a vote", {
        from: idToHex(from),
        role: this.role,
        result,
      });
    }
    return result;
  }
}

export class Machine {
  readonly replica: Replica;
  #state: Follower | Campaign | Leader = { role: "follower", leader: 0n };
  /**
   * The tick of the last message from a leader. A new machine assumes that one arrived just before
   * it started.
   */
  #heardLeaderTick = 0;
  /** Ticks since the last message from the leader, or since the election began. */
  #electionElapsed = 0;
  /** The randomized election timeout: from electionTicks to 2 * electionTicks - 1. */
  #electionTimeoutTicks = 0;

  /** Throws what the constructor of Replica throws. */
  constructor(config: RaftConfig, initial: InitialState) {
    this.replica = new Replica(config, initial);
    this.#randomizeElectionTimeout();
  }

  get role(): Role {
    return this.#state.role;
  }

  /** The leader's id, 0n if unknown. */
  get leader(): bigint {
    return this.#state.leader;
  }

  /** The state of a leader; undefined in other roles. */
  get leading(): Leader | undefined {
    return this.#state.role === "leader" ? this.#state : undefined;
  }

  /** The present candidacy; undefined in other roles. */
  get campaign(): Campaign | undefined {
    const state = this.#state;
    return state.role === "candidate" || state.role === "pre-candidate" ? state : undefined;
  }

  #randomizeElectionTimeout(): void {
    const { electionTicks, randomBelow } = this.replica.config;
    this.#electionTimeoutTicks = electionTicks + randomBelow(electionTicks);
  }

  /** Starts the election timeout anew, as every change of role or term does. */
  #restartTimeout(): void {
    this.#electionElapsed = 0;
    this.#randomizeElectionTimeout();
  }

  /** Becomes a follower. @param leader 0n if unknown */
  #becomeFollower(term: number, leader: bigint): void {
    const { replica } = this;
    const wasFollower = this.role === "follower" && replica.term === term;
    replica.enterTerm(term);
    this.#restartTimeout();
    this.#state = { role: "follower", leader };
    if (!wasFollower) replica.note("info", "became follower");
  }

  /** Starts a pre-vote: neither term nor vote change yet. */
  #becomePreCandidate(): Campaign {
    if (this.role === "leader") violated("RAFT-11", "leader to pre-candidate");
    this.#randomizeElectionTimeout();
    const campaign = new Campaign(this.replica, "pre-candidate");
    this.#state = campaign;
    this.replica.note("info", "became pre-candidate");
    return campaign;
  }

  /** Raises the term, and votes for itself in it. */
  becomeCandidate(): Campaign {
    const { replica } = this;
    if (this.role === "leader") violated("RAFT-11", "leader to candidate");
    replica.enterTerm(replica.term + 1);
    this.#restartTimeout();
    const campaign = new Campaign(replica, "candidate");
    this.#state = campaign;
    replica.castVote(replica.id);
    replica.note("info", "became candidate");
    return campaign;
  }

  becomeLeader(): Leader {
    const { replica } = this;
    if (this.role !== "candidate") violated("RAFT-11", `${this.role} to leader`);
    this.#restartTimeout();
    const { lastIndex } = replica;
    const leading = new Leader(replica);
    this.#state = leading;
    replica.note("info", "became leader", { lastIndex, leader: idToHex(replica.id) });
    return leading;
  }

  /**
   * Campaigns if this machine may. @param transfer at the request of the leader: at once with a
   * real vote, which leases do not prevent
   */
  tryCampaign(transfer = false): void {
    const { replica } = this;
    if (this.leading !== undefined) return;
    if (!replica.promotable) {
      replica.note("debug", "does not campaign: not a voter, or its snapshot is not in place");
      return;
    }
    if (replica.term >= MAX_TERM) {
      replica.note("error", "does not campaign: no term is left");
      return;
    }
    if (replica.log.hasUnappliedConfChange()) {
      replica.note("info", "does not campaign: a committed configuration change is not applied");
      return;
    }
    const asking = replica.config.preVote && !transfer;
    const campaign = asking ? this.#becomePreCandidate() : this.becomeCandidate();
    campaign.requestVotes(transfer);
  }

  /** This machine's vote for itself has become durable. */
  countOwnVote(role: CandidateRole): void {
    this.#countVote(role, this.replica.id, true);
  }

  /** Counts a vote for a campaign in this role, if there is one. */
  #countVote(role: CandidateRole, from: bigint, granted: boolean): void {
    const { campaign } = this;
    if (campaign?.role !== role) return;
    const result = campaign.count(from, granted);
    if (result === "lost") this.#becomeFollower(this.replica.term, 0n);
    else if (result === "won" && role === "pre-candidate")
      this.becomeCandidate().requestVotes(false);
    else if (result === "won") this.becomeLeader();
  }

  /**
   * Handles a message from another member. One that does not apply is dropped, with a log line.
   * Returns the reason if it was refused as one that no correct member sends (message.ts).
   */
  step(message: raftpb.Message): string | undefined {
    const { replica } = this;
    const { type, from } = message;
    if (!this.#isAcceptable(message)) {
      if (replica.hasLogger) {
        replica.note("debug", "dropped a message", {
          type: messageName(type),
          from: idToHex(from),
        });
      }
      return undefined;
    }
    const { leading } = this;
    const wrong = impossible(message, replica, leading !== undefined);
    if (wrong !== undefined) return wrong;
    if (!isTermless(type) && !this.#settleTerm(message)) return undefined;
    if (type === MsgVote || type === MsgPreVote) {
      if (replica.handleVoteRequest(message, this.leader)) this.#electionElapsed = 0;
    } else if (this.leading !== undefined) this.leading.step(message);
    else this.#stepOther(message);
    return undefined;
  }

  #isAcceptable({ type, from, to, term }: raftpb.Message): boolean {
    const { id, conf } = this.replica;
    if (isLocalMessage(type) || to !== id || from === id || from === 0n) return false;
    if (isResponse(type) && !isMember(conf, from)) return false;
    return term > 0 !== isTermless(type);
  }

  /**
   * Compares terms. True if the message is to be handled in the current term (or is a pre-vote,
   * which names another term).
   */
  #settleTerm(message: raftpb.Message): boolean {
    const { replica } = this;
    if (message.term === replica.term) return true;
    if (message.term < replica.term) {
      replica.notifyStale(message);
      return false;
    }
    const { type } = message;
    if (
      (type === MsgVote || type === MsgPreVote) &&
      !equals(message.context, CAMPAIGN_TRANSFER) &&
      this.inLease
    ) {
      replica.note("info", "ignores a vote request: it hears a leader", {
        from: idToHex(message.from),
        requestTerm: message.term,
      });
      return false;
    }
    // A pre-vote request starts no campaign, and a grant carries the requested term.
    if (type === MsgPreVote || (type === MsgPreVoteResp && !message.reject)) return true;
    if (replica.hasLogger) {
      replica.note("info", "saw a higher term", {
        type: messageName(type),
        from: idToHex(message.from),
        messageTerm: message.term,
      });
    }
    this.#becomeFollower(message.term, isFromLeader(type) ? message.from : 0n);
    return true;
  }

  /**
   * True if a leader's message arrived so recently that the leader may rely on this machine not to
   * vote. A leader itself is always in its lease: it steps down otherwise.
   */
  get inLease(): boolean {
    const { checkQuorum: enabled, electionTicks, readOnly } = this.replica.config;
    if (!enabled) return false;
    if (this.leading !== undefined) return true;
    // With lease reads, a machine grants no vote for as long as a lease may last, even after a
    // higher term or a restart.
    if (readOnly === "lease") return this.replica.ticks - this.#heardLeaderTick < electionTicks;
    return this.leader !== 0n && this.#electionElapsed < electionTicks;
  }

  /** Follower, candidate and pre-candidate. */
  #stepOther(message: raftpb.Message): void {
    const { replica } = this;
    switch (message.type) {
      case MsgApp:
        this.#hearLeader(message.from);
        replica.handleAppend(message);
        return;
      case MsgHeartbeat:
        this.#hearLeader(message.from);
        replica.handleHeartbeat(message);
        return;
      case MsgSnap:
        this.#hearLeader(message.from);
        replica.handleSnapshot(message);
        return;
      case MsgVoteResp:
        this.#learnCommit(message);
        this.#countVote("candidate", message.from, !message.reject);
        return;
      case MsgPreVoteResp:
        this.#learnCommit(message);
        this.#countVote("pre-candidate", message.from, !message.reject);
        return;
      case MsgProp:
        if (message.entries.length > 0) this.#passOn(message);
        return;
      case MsgReadIndex:
      case MsgTransferLeader:
        this.#passOn(message);
        return;
      case MsgReadIndexResp:
        if (message.entries.length === 1 && message.entries[0] !== undefined)
          replica.readStates.push({ context: message.entries[0].data, index: message.index });
        return;
      case MsgTimeoutNow:
        if (this.role === "follower") this.tryCampaign(true);
        return;
    }
  }

  /** Passes another member's request on to the leader; drops it if no leader is known. */
  #passOn(message: raftpb.Message): void {
    const { leader } = this;
    if (leader !== 0n && leader !== message.from) this.replica.send({ ...message, to: leader });
  }

  /**
   * Sends this machine's own payloads to the leader in one message without a term; false if no
   * leader is known.
   */
  forward(
    type: raftpb.MessageType,
    entryType: raftpb.EntryType,
    payloads: readonly Uint8Array[],
  ): boolean {
    const { leader, replica } = this;
    if (leader === 0n) return false;
    const message = newMessage(type, leader, replica.id, 0);
    message.entries = payloads.map((data) => ({ type: entryType, term: 0, index: 0, data }));
    replica.send(message);
    return true;
  }

  /** A campaign ends if a refusal shows a configuration change that is to be applied first. */
  #learnCommit(refusal: raftpb.Message): void {
    const { replica } = this;
    if (!replica.learnCommit(refusal)) return;
    if (this.role !== "follower" && replica.log.hasUnappliedConfChange())
      this.#becomeFollower(replica.term, 0n);
  }

  /** A leader exists in the current term. */
  #hearLeader(leader: bigint): void {
    const { replica } = this;
    this.#heardLeaderTick = replica.ticks;
    if (this.#state.role !== "follower") {
      this.#becomeFollower(replica.term, leader);
      return;
    }
    this.#electionElapsed = 0;
    this.#state.leader = leader;
  }

  /** A follower no longer knows its leader, and may grant votes at once. */
  forgetLeader(): void {
    if (this.#state.role === "follower") this.#state.leader = 0n;
  }

  /** One tick of the driver's clock. */
  tick(): void {
    const { leading, replica } = this;
    replica.ticks++;
    if (leading !== undefined) {
      if (!leading.tick()) this.#stepDown("leads no more: a quorum is not active");
      return;
    }
    this.#electionElapsed++;
    if (this.#electionElapsed < this.#electionTimeoutTicks || !replica.promotable) return;
    this.#electionElapsed = 0;
    this.tryCampaign();
  }

  /**
   * Lets `ticks` of the present election timeout pass at once. The clock that leases of reads are
   * measured with stays as it is, and so does a member that knows a leader or is not a follower.
   */
  advanceElection(ticks: number): void {
    if (this.role === "follower" && this.leader === 0n) this.#electionElapsed += ticks;
  }

  #stepDown(reason: string): void {
    this.replica.note("warn", reason);
    this.#becomeFollower(this.replica.term, 0n);
  }

  /** Applies a committed change of the configuration. Throws RAFT-15 if it does not fit. */
  applyConfChange(change: raftpb.ConfChangeV2): void {
    this.#configure(confStateAfter(this.replica.conf, change));
  }

  /** Everything up to index, entries and snapshot, is applied. */
  applied(index: number): void {
    const { replica } = this;
    replica.log.appliedTo(index);
    for (
      let conf = replica.takeRestoredConf();
      conf !== undefined;
      conf = replica.takeRestoredConf()
    )
      this.#configure(conf);
    this.leading?.leaveJointIfDue();
  }

  /** Puts a configuration into effect. */
  #configure(conf: raftpb.ConfState): void {
    this.replica.configure(conf);
    if (this.leading?.reconfigure() === false) this.#stepDown("leads no more: removed or demoted");
  }
}
