/** Campaigns, and votes asked of this machine. */
import { idToHex, raftpb } from "@quorate/proto";
import { MAX_TERM } from "./config.ts";
import type { Core } from "./core.ts";
import { CAMPAIGN_TRANSFER } from "./message.ts";
import { becomeCandidate, becomeFollower, becomeLeader, becomePreCandidate } from "./roles.ts";

const { MsgPreVote, MsgPreVoteResp, MsgVote, MsgVoteResp } = raftpb.MessageType;

/**
 * pre-vote: ask first. vote: raise the term at once. transfer: the same, ordered by the leader, so
 * that leases do not hold it back.
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
    // A pre-vote is about the term that the campaign would raise.
    if (asking) request.term = core.term + 1;
    request.index = core.log.lastIndex;
    request.logTerm = core.log.lastTerm;
    if (campaign === "transfer") request.context = CAMPAIGN_TRANSFER;
    // A real vote must not be asked for before the own vote and the log it is asked for are
    // durable. Else a crash could lose them, and the grant of this campaign could be counted in the
    // next one, of the same term but with a shorter log.
    if (asking) core.send(request);
    else core.sendAfterSync(request);
  }
}

/** This machine's own vote has become durable. */
export function countSelfVote(core: Core, kind: "pre-vote" | "vote"): void {
  if (core.role === (kind === "pre-vote" ? "pre-candidate" : "candidate"))
    countVote(core, core.id, true);
}

/** Counts an answer to the campaign under way. */
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

/** Answers MsgVote and MsgPreVote of this machine's term, or MsgPreVote of a higher one. */
export function handleVoteRequest(core: Core, request: raftpb.Message): void {
  const asking = request.type === MsgPreVote;
  const free =
    core.vote === request.from || // asked again
    (core.vote === 0n && core.leader === 0n) || // not voted, and nobody is known to lead
    (asking && request.term > core.term);
  const granted = free && core.log.isUpToDate(request.index, request.logTerm);
  if (core.hasLogger) {
    core.note("info", granted ? "grants a vote" : "refuses a vote", {
      to: idToHex(request.from),
      asking,
      requestTerm: request.term,
    });
  }
  // Learners vote too: the asker may know of a promotion that has not reached this machine.
  const response = core.message(asking ? MsgPreVoteResp : MsgVoteResp, request.from);
  response.reject = !granted;
  // The grant of a pre-vote names the term asked for, or the asker, who is ahead in nothing but
  // that, would drop it as stale or bow to it.
  if (granted) response.term = request.term;
  else hintCommit(core, response);
  if (granted && !asking) {
    core.castVote(request.from);
    core.electionElapsed = 0;
  }
  core.sendAfterSync(response);
}

/**
 * Puts what this machine knows to be committed into a refusal. etcd's members send nothing there,
 * and read nothing.
 */
export function hintCommit(core: Core, refusal: raftpb.Message): void {
  refusal.commit = core.log.committed;
  refusal.logTerm = core.log.term(core.log.committed)!;
}

/**
 * Commits what a refusal shows to be committed, if this log has it. Configurations take effect when
 * they are applied, so who has not heard that a change is committed goes by the old one and may
 * need the vote of a member that was removed or demoted by it; if that member's log is longer, no
 * one could ever be elected. (TiKV's raft-rs found this first.)
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
