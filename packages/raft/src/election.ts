/** Campaigns, and this machine's responses to vote requests. */
import { idToHex, raftpb } from "@quorate/proto";
import { MAX_TERM } from "./config.ts";
import type { Core } from "./core.ts";
import { CAMPAIGN_TRANSFER } from "./message.ts";
import { becomeCandidate, becomeFollower, becomeLeader, becomePreCandidate } from "./roles.ts";

const { MsgPreVote, MsgPreVoteResp, MsgVote, MsgVoteResp } = raftpb.MessageType;

/**
 * pre-vote: without raising the term. vote: raises the term. transfer: the same, at the request of
 * the leader, so that leases do not prevent it.
 */
export type Campaign = "pre-vote" | "vote" | "transfer";

/** Campaigns if this machine may. */
export function tryCampaign(core: Core, campaign: Campaign): void {
  if (core.isLeader) return;
  if (!core.promotable) {
    core.note("debug", "does not campaign: not a voter, or its snapshot is not in place");
    return;
  }
  if (core.term >= MAX_TERM) {
    core.note("error", "does not campaign: no term is left");
    return;
  }
  if (core.log.hasUnappliedConfChange()) {
    core.note("info", "does not campaign: a committed configuration change is not applied");
    return;
  }
  startCampaign(core, campaign);
}

function startCampaign(core: Core, campaign: Campaign): void {
  const asking = campaign === "pre-vote";
  if (asking) becomePreCandidate(core);
  else becomeCandidate(core);
  core.selfVoteDue = asking ? "pre-vote" : "vote";
  for (const id of core.tracker.voterIds()) {
    if (id === core.id) continue;
    const request = core.message(asking ? MsgPreVote : MsgVote, id);
    // A pre-vote names the term that the campaign would raise to.
    if (asking) request.term = core.term + 1;
    request.index = core.log.lastIndex;
    request.logTerm = core.log.lastTerm;
    if (campaign === "transfer") request.context = CAMPAIGN_TRANSFER;
    // A real vote is requested only after this machine's own vote and log are durable. A crash
    // could otherwise lose them, and a vote granted to this campaign could count in a later one of
    // the same term with a shorter log.
    if (asking) core.send(request);
    else core.sendAfterSync(request);
  }
}

/** This machine's own vote has become durable. */
export function countSelfVote(core: Core, kind: "pre-vote" | "vote"): void {
  if (core.role === (kind === "pre-vote" ? "pre-candidate" : "candidate"))
    countVote(core, core.id, true);
}

/** Counts a response to the current campaign. */
export function countVote(core: Core, from: bigint, granted: boolean): void {
  core.tracker.recordVote(from, granted);
  const result = core.tracker.voteResult();
  if (core.hasLogger)
    core.note("debug", granted ? "got a vote" : "was refused a vote", {
      from: idToHex(from),
      role: core.role,
      result,
    });
  if (result === "lost") becomeFollower(core, core.term, 0n);
  else if (result === "won" && core.role === "pre-candidate") startCampaign(core, "vote");
  else if (result === "won") becomeLeader(core);
}

/** Responds to MsgVote and MsgPreVote of this machine's term, or MsgPreVote of a higher one. */
export function handleVoteRequest(core: Core, request: raftpb.Message): void {
  const asking = request.type === MsgPreVote;
  const free =
    core.vote === request.from || // a repeated request
    (core.vote === 0n && core.leader === 0n) || // no vote cast and no leader known
    (asking && request.term > core.term);
  const granted = free && core.log.isUpToDate(request.index, request.logTerm);
  if (core.hasLogger) {
    core.note("info", granted ? "grants a vote" : "refuses a vote", {
      to: idToHex(request.from),
      asking,
      requestTerm: request.term,
    });
  }
  // Learners vote too: the candidate may know of a promotion that has not reached this machine.
  const response = core.message(asking ? MsgPreVoteResp : MsgVoteResp, request.from);
  response.reject = !granted;
  // A granted pre-vote carries the requested term. With this machine's own, lower term the
  // candidate would drop it as stale; a higher one would make it step down.
  if (granted) response.term = request.term;
  else hintCommit(core, response);
  if (granted && !asking) {
    core.castVote(request.from);
    core.electionElapsed = 0;
  }
  core.sendAfterSync(response);
}

/**
 * Adds this machine's commit index to a refusal. etcd's members neither send nor read one there.
 */
export function hintCommit(core: Core, refusal: raftpb.Message): void {
  refusal.commit = core.log.committed;
  refusal.logTerm = core.log.term(core.log.committed)!;
}

/**
 * Commits up to the commit index in a refusal, if this log has the entry. Configurations take
 * effect when they are applied, so a member that has not learnt that a change is committed uses the
 * old configuration and may need the vote of a member which the change removed or demoted. If that
 * member's log is longer, no candidate could ever win. (TiKV's raft-rs documents this case.)
 */
export function learnCommit(core: Core, refusal: raftpb.Message): void {
  const { log } = core;
  if (
    !refusal.reject ||
    refusal.commit <= log.committed ||
    !log.matches(refusal.commit, refusal.logTerm)
  )
    return;
  log.commitTo(refusal.commit);
  core.note("info", "learned from a refused vote what is committed", { commit: refusal.commit });
  if (core.role !== "follower" && log.hasUnappliedConfChange()) becomeFollower(core, core.term, 0n);
}
