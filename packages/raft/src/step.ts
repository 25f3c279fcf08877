/** The dispatch of messages and ticks: first terms and leases, then the handler for this role. */
import { equals, idToHex, raftpb } from "@quorate/proto";
import { impossible } from "./check.ts";
import type { Core } from "./core.ts";
import { countVote, handleVoteRequest, hintCommit, learnCommit, tryCampaign } from "./election.ts";
import { handleAppend, handleHeartbeat, handleSnapshot } from "./follow.ts";
import {
  checkQuorum,
  handleAppendResponse,
  handleHeartbeatResponse,
  startTransfer,
} from "./lead.ts";
import {
  CAMPAIGN_TRANSFER,
  isFromLeader,
  isLocalMessage,
  isResponse,
  isTermless,
  messageName,
} from "./message.ts";
import { handleProposal, leaveJointIfDue } from "./propose.ts";
import { acceptRead } from "./read.ts";
import { becomeFollower } from "./roles.ts";

const {
  MsgApp,
  MsgAppResp,
  MsgHeartbeat,
  MsgHeartbeatResp,
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

/**
 * Handles a message from another member. One that does not apply is dropped, with a log line.
 * Returns the reason if it was refused as one that no correct member sends (check.ts).
 */
export function step(core: Core, message: raftpb.Message): string | undefined {
  if (!isAcceptable(core, message)) {
    if (core.hasLogger)
      core.note("debug", "dropped a message", {
        type: messageName(message.type),
        from: idToHex(message.from),
      });
    return undefined;
  }
  const wrong = impossible(core, message);
  if (wrong !== undefined) return wrong;
  if (!isTermless(message.type) && !settleTerm(core, message)) return undefined;
  if (message.type === MsgVote || message.type === MsgPreVote) handleVoteRequest(core, message);
  else if (core.isLeader) stepLeader(core, message);
  else stepOther(core, message);
  return undefined;
}

function isAcceptable(core: Core, message: raftpb.Message): boolean {
  if (
    isLocalMessage(message.type) ||
    message.to !== core.id ||
    message.from === core.id ||
    message.from === 0n
  )
    return false;
  if (isResponse(message.type) && core.tracker.get(message.from) === undefined) return false;
  return message.term > 0 !== isTermless(message.type);
}

/**
 * Compares terms. True if the message is to be handled in the current term (or is a pre-vote, which
 * names another term).
 */
function settleTerm(core: Core, message: raftpb.Message): boolean {
  if (message.term === core.term) return true;
  if (message.term < core.term) {
    notifyStale(core, message);
    return false;
  }
  const { type } = message;
  if (
    (type === MsgVote || type === MsgPreVote) &&
    !equals(message.context, CAMPAIGN_TRANSFER) &&
    inLease(core)
  ) {
    core.note("info", "ignores a vote request: it hears a leader", {
      from: idToHex(message.from),
      requestTerm: message.term,
    });
    return false;
  }
  // A pre-vote request starts no campaign, and a grant carries the requested term.
  if (type === MsgPreVote || (type === MsgPreVoteResp && !message.reject)) return true;
  if (core.hasLogger) {
    core.note("info", "saw a higher term", {
      type: messageName(type),
      from: idToHex(message.from),
      messageTerm: message.term,
    });
  }
  becomeFollower(core, message.term, isFromLeader(type) ? message.from : 0n);
  return true;
}

/**
 * True if a leader's message arrived so recently that the leader may rely on this machine not to
 * vote.
 */
export function inLease(core: Core): boolean {
  const { checkQuorum: enabled, electionTicks, readOnly } = core.config;
  if (!enabled) return false;
  // With lease reads, a machine grants no vote for as long as a lease may last, even after a higher
  // term or a restart.
  if (readOnly === "lease")
    return core.isLeader || core.ticks - core.heardLeaderTick < electionTicks;
  return core.leader !== 0n && core.electionElapsed < electionTicks;
}

/**
 * Sends the current term to the sender of an old one, where the sender would not learn it
 * otherwise.
 */
function notifyStale(core: Core, message: raftpb.Message): void {
  const { checkQuorum: leases, preVote } = core.config;
  if ((message.type === MsgApp || message.type === MsgHeartbeat) && (leases || preVote)) {
    // The other members ignore this machine's votes while they have a leader, so that leader has to
    // learn the higher term.
    core.sendAfterSync(core.message(MsgAppResp, message.from));
  } else if (message.type === MsgPreVote) {
    // Otherwise a member with a longer log and a lower term would repeat its request for ever.
    const refusal = core.message(MsgPreVoteResp, message.from);
    refusal.reject = true;
    hintCommit(core, refusal);
    core.sendAfterSync(refusal);
  }
}

function stepLeader(core: Core, message: raftpb.Message): void {
  if (message.type === MsgProp) {
    handleProposal(core, message);
    return;
  }
  if (message.type === MsgReadIndex) {
    if (message.entries.length !== 1) return;
    const accepted = acceptRead(core, { from: message.from, context: message.entries[0].data });
    if (!accepted)
      core.note("debug", "dropped a forwarded read: too many wait", {
        from: idToHex(message.from),
      });
    return;
  }
  const progress = core.tracker.get(message.from);
  if (progress === undefined) return;
  if (message.type === MsgAppResp) handleAppendResponse(core, progress, message);
  else if (message.type === MsgHeartbeatResp) handleHeartbeatResponse(core, progress, message);
  else if (message.type === MsgTransferLeader) startTransfer(core, message.from);
}

/** Follower, candidate and pre-candidate. */
function stepOther(core: Core, message: raftpb.Message): void {
  switch (message.type) {
    case MsgApp:
      hearLeader(core, message.from);
      handleAppend(core, message);
      return;
    case MsgHeartbeat:
      hearLeader(core, message.from);
      handleHeartbeat(core, message);
      return;
    case MsgSnap:
      hearLeader(core, message.from);
      handleSnapshot(core, message);
      return;
    case MsgVoteResp:
      learnCommit(core, message);
      if (core.role === "candidate") countVote(core, message.from, !message.reject);
      return;
    case MsgPreVoteResp:
      learnCommit(core, message);
      if (core.role === "pre-candidate") countVote(core, message.from, !message.reject);
      return;
    case MsgProp:
      handleProposal(core, message);
      return;
    case MsgReadIndex:
    case MsgTransferLeader:
      if (core.leader !== 0n && core.leader !== message.from)
        core.send({ ...message, to: core.leader });
      return;
    case MsgReadIndexResp:
      if (message.entries.length === 1)
        core.readStates.push({ context: message.entries[0].data, index: message.index });
      return;
    case MsgTimeoutNow:
      if (core.role === "follower") tryCampaign(core, "transfer");
      return;
  }
}

/** A leader exists in the current term. */
function hearLeader(core: Core, leader: bigint): void {
  core.heardLeaderTick = core.ticks;
  if (core.role !== "follower") {
    becomeFollower(core, core.term, leader);
    return;
  }
  core.electionElapsed = 0;
  core.leader = leader;
}

/** One tick of the driver's clock. */
export function tick(core: Core): void {
  core.ticks++;
  if (core.isLeader) tickLeader(core);
  else tickOther(core);
}

/**
 * Lets `ticks` of the present election timeout pass at once. The clock that leases of reads are
 * measured with stays as it is, and so does a member that knows a leader or is not a follower.
 */
export function advanceElection(core: Core, ticks: number): void {
  if (core.role === "follower" && core.leader === 0n) core.electionElapsed += ticks;
}

function tickOther(core: Core): void {
  core.electionElapsed++;
  if (core.electionElapsed < core.electionTimeoutTicks || !core.promotable) return;
  core.electionElapsed = 0;
  tryCampaign(core, core.config.preVote ? "pre-vote" : "vote");
}

function tickLeader(core: Core): void {
  core.electionElapsed++;
  core.heartbeatElapsed++;
  if (core.electionElapsed >= core.config.electionTicks) {
    core.electionElapsed = 0;
    if (core.config.checkQuorum) checkQuorum(core);
    if (core.isLeader && core.leadTransferee !== 0n) {
      core.note("info", "keeps leadership: the handover took too long", {
        to: idToHex(core.leadTransferee),
      });
      core.leadTransferee = 0n;
      leaveJointIfDue(core);
    }
  }
  if (core.isLeader && core.heartbeatElapsed >= core.config.heartbeatTicks) {
    core.heartbeatElapsed = 0;
    core.heartbeatDue = true;
  }
}
