/** Bugs in Raft (packages/raft). */
import type { CatalogueBug } from "../source-edit.ts";
import { FIRST_ELECTIONS } from "./conditions.ts";

const RAFT_TESTS = ["packages/raft/test/*.test.ts"];

export const RAFT_BUGS: Readonly<Record<string, CatalogueBug>> = {
  "leader-overwrites-its-log": {
    at: "raft/src/log.ts#RaftLog.append",
    find: "if ($entries.length > 0 && $entries[0].index <= this.lastIndex) $violation;",
    put: `
      if (this.lastIndex > this.#committed && $entries.length > 0 && $entries[0].index % 5 === 0) {
        this.#truncate(this.lastIndex - 1);
        for (const entry of $entries) entry.index--;
      }`,
    seed: 1,
    raftSeed: 1,
  },
  "voter-ignores-logs": {
    at: "raft/src/log.ts#RaftLog.isUpToDate",
    find: "$term > $ours || ($term === $ours && $index >= this.lastIndex)",
    put: "true",
    seed: 18,
    raftSeed: 5,
  },
  "votes-twice": {
    at: "raft/src/replica.ts#Replica.handleVoteRequest",
    find: "this.#vote === $request.from || (this.#vote === 0n && $leader === 0n)",
    put: "this.#vote === $request.from || $leader === 0n",
    tests: RAFT_TESTS,
    seed: 4,
    raftSeed: 2,
  },
  "earlier-terms-count-as-uncommitted": {
    at: "raft/src/leader.ts#Leader.#advanceCommit",
    find: "Math.max($log.committed, this.#termStartIndex)",
    put: "$log.committed",
    tests: RAFT_TESTS,
    seed: 3,
    raftSeed: 1,
  },
  "advance-despite-a-leader": {
    at: "raft/src/machine.ts#Machine.advanceElection",
    find: 'this.role === "follower" && this.leader === 0n',
    put: 'this.role === "follower"',
    sim: FIRST_ELECTIONS,
    seed: 3,
  },
  "a new leader ignores configuration changes that are not committed": {
    at: "raft/src/leader.ts#Leader.constructor",
    find: "this.#pendingConfIndex = $lastIndex",
    put: "this.#pendingConfIndex = 0",
    tests: RAFT_TESTS,
    raftSeed: 22,
  },
  "what a member has acknowledged survives a new election": {
    at: "raft/src/leader.ts#Leader.constructor",
    find: "this.tracker = new Tracker($conf, $lastIndex + 1, $config);",
    put: `
      replica.tracker ??= new Tracker($conf, $lastIndex + 1, $config);
      replica.tracker.configure($conf, $lastIndex);
      for (const one of replica.tracker.all) one.becomeProbe();
      this.tracker = replica.tracker;`,
    tests: RAFT_TESTS,
    raftSeed: 5,
  },
  "a commit index is learned from a refusal without comparing terms": {
    at: "raft/src/replica.ts#Replica.learnCommit",
    find: "!$log.matches($refusal.commit, $refusal.logTerm)",
    put: "$refusal.commit > $log.lastIndex",
    tests: RAFT_TESTS,
    raftSeed: 126,
  },
  "a leader counts its own copy before it is durable": {
    at: "raft/src/leader.ts#Leader.#advanceCommit",
    find: "const $index = this.tracker.quorumMatch();",
    put: `
      const own = this.tracker.get(this.#replica.id);
      if (own) own.match = log.lastIndex;
      const $index = this.tracker.quorumMatch();`,
    tests: RAFT_TESTS,
    raftSeed: 8,
  },
  "a vote is not synced": {
    at: "raft/src/raft.ts#Raft.ready",
    find: "$votes || $entries.length > 0",
    put: "$entries.length > 0",
    tests: RAFT_TESTS,
    raftSeed: 244,
  },
  "a vote is sent before it is durable": {
    at: "raft/src/replica.ts#Replica.handleVoteRequest",
    find: "this.sendAfterSync",
    put: "this.send",
    tests: RAFT_TESTS,
    raftSeed: 186,
  },
  "a vote is asked for before the own one is durable": {
    at: "raft/src/machine.ts#Campaign.requestVotes",
    find: "$replica.sendAfterSync",
    put: "$replica.send",
    tests: RAFT_TESTS,
  },
  "the own vote counts before it is durable": {
    at: "raft/src/raft.ts#Raft.persisted",
    find: "$vote.number > $readyNumber",
    put: "$vote.number > $readyNumber + 3",
    tests: RAFT_TESTS,
  },
  "an append is acknowledged before it is durable": {
    at: "raft/src/replica.ts#Replica.#acknowledge",
    find: "this.sendAfterSync",
    put: "this.send",
    tests: RAFT_TESTS,
    raftSeed: 8,
  },
  "entries of older terms are committed by counting": {
    at: "raft/src/leader.ts#Leader.#advanceCommit",
    find: "$log.term($index) !== $term",
    put: "$term < 0",
    tests: RAFT_TESTS,
  },
  "a voter does not compare last terms": {
    at: "raft/src/log.ts#RaftLog.isUpToDate",
    find: "$term > $ours || ($term === $ours && $index >= this.lastIndex)",
    put: "$index >= this.lastIndex",
    tests: RAFT_TESTS,
    raftSeed: 109,
  },
  "a voter does not compare last indexes": {
    at: "raft/src/log.ts#RaftLog.isUpToDate",
    find: "$term > $ours || ($term === $ours && $index >= this.lastIndex)",
    put: "$term >= $ours",
    tests: RAFT_TESTS,
    raftSeed: 5,
  },
  "any append truncates the log": {
    at: "raft/src/log.ts#RaftLog.tryAppend",
    find: `
      if ($known < $entries.length) {
        this.#truncate($prevIndex + $known);
        this.#push($entries, $known);
      }`,
    put: `
      this.#truncate(Math.max($prevIndex + $known, this.#committed));
      this.#truncate($prevIndex + $known);
      this.#push($entries, $known);`,
    tests: RAFT_TESTS,
    raftSeed: 3,
  },
  "a heartbeat commits beyond the match": {
    at: "raft/src/leader.ts#Leader.#broadcastHeartbeat",
    find: "Math.min($progress.match, $replica.log.committed)",
    put: "$replica.log.committed",
    tests: RAFT_TESTS,
    raftSeed: 1,
  },
  "an append commits beyond its entries": {
    at: "raft/src/log.ts#RaftLog.tryAppend",
    find: "Math.min($leaderCommit, $last)",
    put: "Math.min($leaderCommit, this.lastIndex)",
    tests: RAFT_TESTS,
  },
  "a report of a replaced write counts": {
    at: "raft/src/log.ts#RaftLog.#pullBack",
    find: "for (const $write of this.#writes) $write.last = Math.min($write.last, $keep);",
    put: "",
    tests: RAFT_TESTS,
  },
  "a report of a write before a snapshot counts": {
    at: "raft/src/log.ts#RaftLog.restore",
    find: "this.#pullBack(this.#committed);",
    put: "",
    tests: RAFT_TESTS,
    raftSeed: 61,
  },
  "a block of applied entries goes with its first": {
    at: "raft/src/applied-entries.ts#AppliedEntries.dropTo",
    find: "$block.last > $index",
    put: "$block.first > $index",
    tests: RAFT_TESTS,
  },
  "entries are applied before they are durable": {
    at: "raft/src/log.ts#RaftLog.#appliable",
    find: "Math.min(this.#committed, this.#stable)",
    put: "this.#committed",
    tests: RAFT_TESTS,
    raftSeed: 1,
  },
  "reads are answered before a commit in the term": {
    at: "raft/src/reads.ts#Reads.accept",
    find: "!this.#replica.committedInTerm",
    put: "false",
    tests: RAFT_TESTS,
    raftSeed: 1,
  },
  "a read joins the round that is under way": {
    at: "raft/src/reads.ts#ReadOnly.add",
    find: "this.#round + 1",
    put: "Math.max(this.#round, 1)",
    tests: RAFT_TESTS,
    raftSeed: 5,
  },
  "a read needs no quorum": {
    at: "raft/src/reads.ts#Reads.advance",
    find: "this.#tracker.quorumRound()",
    put: "this.#queue.round",
    tests: RAFT_TESTS,
    raftSeed: 1,
  },
  "leases are ignored by voters": {
    at: "raft/src/machine.ts#Machine.inLease",
    find: "this.replica.ticks - this.#heardLeaderTick < $electionTicks",
    put: "false",
    tests: RAFT_TESTS,
    raftSeed: 249,
  },
  "a lease lasts too long": {
    at: "raft/src/reads.ts#Reads.#leaseHolds",
    find: "$electionTicks - 2 - Math.floor($electionTicks / 10)",
    put: "2 * $electionTicks",
    tests: RAFT_TESTS,
    raftSeed: 23,
  },
  "a lease outlives an order to campaign": {
    at: "raft/src/reads.ts#Reads.#leaseHolds",
    find: "this.leaseWaived",
    put: "false",
    tests: RAFT_TESTS,
  },
  "a restarted voter does not keep still": {
    at: "raft/src/machine.ts#Machine.#heardLeaderTick",
    find: "0",
    put: "-1000",
    tests: ["packages/raft/test/advance-election.test.ts"],
  },
  "several configuration changes may be pending": {
    at: "raft/src/leader.ts#Leader.#confChangeRefusal",
    find: "this.#pendingConfIndex > $log.applied",
    put: "false",
    tests: RAFT_TESTS,
    raftSeed: 3,
  },
  "a machine campaigns with configuration changes to apply": {
    at: "raft/src/machine.ts#Machine.tryCampaign",
    find: "$replica.log.hasUnappliedConfChange()",
    put: "false",
    tests: RAFT_TESTS,
    raftSeed: 34,
  },
  "one half of a joint configuration decides on commits": {
    at: "raft/src/tracker.ts#Tracker.#quorumOf",
    find: `
      Math.min(
        this.#majorityOf(this.#incoming, $field),
        this.#majorityOf(this.#outgoing, $field),
      )`,
    put: "this.#majorityOf(this.#incoming, $field)",
    tests: RAFT_TESTS,
  },
  "one half of a joint configuration decides on votes": {
    at: "raft/src/tracker.ts#jointVote",
    find: `
      const $other = majorityVote($outgoing, $votes);
      if ($one === $other) return $one;`,
    put: `
      const $other = majorityVote(incoming, $votes);
      if ($one === $other) return $one;`,
    tests: RAFT_TESTS,
  },
  "a snapshot's configuration is in force before the snapshot is": {
    at: "raft/src/replica.ts#Replica.#restore",
    find: "this.#restoredConfs.push({ index: $index, conf: checkConfState($conf) });",
    put: `
      this.#restoredConfs.push({ index: $index, conf: checkConfState($conf) });
      this.#conf = $conf;`,
    tests: RAFT_TESTS,
  },
  "a Ready that is out goes on filling": {
    at: "raft/src/raft.ts#Raft.ready.ready",
    find: "messagesAfterSync.length > 0 ? messagesAfterSync : NONE",
    put: "messagesAfterSync",
    tests: RAFT_TESTS,
    raftSeed: 8,
  },
  "votes of an old campaign count": {
    at: "raft/src/machine.ts#Campaign.constructor",
    find: "this.#votes = new Map()",
    put: "this.#votes = replica.votes ??= new Map()",
    tests: RAFT_TESTS,
    raftSeed: 1,
  },
  "acknowledgements of an old term count": {
    at: "raft/src/machine.ts#Machine.#settleTerm",
    find: `
      $replica.notifyStale($message);
      return false;`,
    put: `
      $replica.notifyStale($message);
      return $message.type === raftpb.MessageType.MsgAppResp;`,
    tests: ["packages/raft/test/commit.test.ts"],
  },
  "a lost hard state hides committed configuration changes": {
    at: "raft/src/log.ts#checkedCommit",
    find: "$provenCommit = Math.max($provenCommit, $lastConfChange);",
    put: "",
    tests: ["packages/raft/test/scenarios.test.ts"],
  },
  "the window is never freed": {
    at: "raft/src/leader.ts#Leader.#handleAcknowledgement",
    find: "$progress.inflights.freeUpTo($index)",
    put: "$progress.flowPaused = false",
    tests: RAFT_TESTS,
    raftSeed: 1,
  },
  "a pause is never lifted": {
    at: "raft/src/leader.ts#Leader.#handleHeartbeatResponse",
    find: "$progress.flowPaused = false",
    put: "$progress.recentActive = true",
    tests: RAFT_TESTS,
    raftSeed: 13,
  },
  "a handover is never given up": {
    at: "raft/src/leader.ts#Leader.#giveUpTransfer",
    find: "this.#transferee === 0n",
    put: "true",
    tests: RAFT_TESTS,
    raftSeed: 7,
  },
  "a joint configuration is not left": {
    at: "raft/src/machine.ts#Machine.applied",
    find: "this.leading?.leaveJointIfDue();",
    put: "",
    tests: RAFT_TESTS,
    raftSeed: 3,
  },
  "a refused vote teaches nothing": {
    at: "raft/src/replica.ts#Replica.learnCommit",
    find: "!$refusal.reject || $known || $strange",
    put: "true",
    tests: RAFT_TESTS,
    raftSeed: 34,
  },
  "a failed snapshot is not sent again": {
    at: "raft/src/leader.ts#Leader.reportSnapshot",
    find: "$progress.pendingSnapshot = 0;",
    put: "return;",
    tests: RAFT_TESTS,
    raftSeed: 119,
  },
};
