/**
 * Bugs to plant, to see whether the random schedules catch them. A mutant is a change to one place
 * of the source, written as the text before and after. test/mutants.test.ts checks that each still
 * applies, and with RAFT_MUTANTS=1 that each is caught.
 */

export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly before: string;
  readonly after: string;
  /** Seeds that the search may take. */
  readonly maxSeeds?: number;
  /** Too rare for schedules; a scenario shows it. */
  readonly by?: "scenarios";
  /** Files of packages/raft/test that show it sooner than all of them would; all unless said. */
  readonly tests?: string;
}

export const mutants: readonly Mutant[] = [
  {
    name: "a leader counts its own copy before it is durable",
    file: "leader.ts",
    before: "const index = this.tracker.quorumMatch();",
    after:
      "const own = this.tracker.get(this.#replica.id);\n" +
      "    if (own) own.match = log.lastIndex;\n    const index = this.tracker.quorumMatch();",
  },
  {
    name: "a vote is not synced",
    file: "raft.ts",
    before: "mustSync: votes || entries.length > 0",
    after: "mustSync: entries.length > 0",
  },
  {
    name: "a vote is sent before it is durable",
    file: "replica.ts",
    before: "if (votes) this.castVote(request.from);\n    this.sendAfterSync(response);",
    after: "if (votes) this.castVote(request.from);\n    this.send(response);",
  },
  {
    name: "a vote is asked for before the own one is durable",
    file: "machine.ts",
    before: "else replica.sendAfterSync(request);",
    after: "else replica.send(request);",
    by: "scenarios",
  },
  {
    name: "the own vote counts before it is durable",
    file: "raft.ts",
    before: "vote.number > readyNumber",
    after: "vote.number > readyNumber + 3",
    maxSeeds: 20_000,
  },
  {
    name: "an append is acknowledged before it is durable",
    file: "replica.ts",
    before: "response.index = index;\n    this.sendAfterSync(response);",
    after: "response.index = index;\n    this.send(response);",
  },
  {
    name: "entries of older terms are committed by counting",
    file: "leader.ts",
    before: "if (index <= log.committed || log.term(index) !== term) return;",
    after: "if (index <= log.committed || term < 0) return;",
    maxSeeds: 20_000,
  },
  {
    name: "a voter does not compare last terms",
    file: "log.ts",
    before: "return term > ours || (term === ours && index >= this.lastIndex);",
    after: "return ours >= 0 && term >= 0 && index >= this.lastIndex;",
  },
  {
    name: "a voter does not compare last indexes",
    file: "log.ts",
    before: "return term > ours || (term === ours && index >= this.lastIndex);",
    after: "return term >= ours && index >= 0;",
  },
  {
    name: "a machine votes twice in a term",
    file: "replica.ts",
    before: "(this.#vote === 0n && leader === 0n) ||",
    after: "leader === 0n ||",
  },
  {
    name: "any append truncates the log",
    file: "log.ts",
    before: "    if (known < entries.length) {\n",
    after:
      "    if (entries.length > 0 || known === 0) {\n      this.#truncate(Math.max(prevIndex + known, this.#committed));\n",
  },
  {
    name: "a heartbeat commits beyond the match",
    file: "leader.ts",
    before: "heartbeat.commit = Math.min(progress.match, replica.log.committed);",
    after: "heartbeat.commit = replica.log.committed;",
  },
  {
    name: "an append commits beyond its entries",
    file: "log.ts",
    before: "this.commitTo(Math.min(leaderCommit, last));",
    after: "this.commitTo(Math.min(leaderCommit, this.lastIndex));",
    maxSeeds: 20_000,
  },
  {
    name: "a report of a replaced write counts",
    file: "log.ts",
    before: "for (const write of this.#writes) write.last = Math.min(write.last, keep);",
    after: "if (keep < 0) this.#writes.length = 0;",
  },
  {
    name: "a report of a write before a snapshot counts",
    file: "log.ts",
    before: "    this.#pullBack(this.#committed);\n    this.#entries = [];",
    after: "    this.#entries = [];",
    maxSeeds: 20_000,
  },
  {
    name: "entries are applied before they are durable",
    file: "log.ts",
    before: "return Math.min(this.#committed, this.#stable);",
    after: "return this.#committed;",
  },
  {
    name: "reads are answered before a commit in the term",
    file: "reads.ts",
    before: "if (!this.#replica.committedInTerm) this.#queue.hold(read);",
    after: "if (this.#replica.id < 0n) this.#queue.hold(read);",
  },
  {
    name: "a read joins the round that is under way",
    file: "reads.ts",
    before: "index, round: this.#round + 1 });",
    after: "index, round: Math.max(this.#round, 1) });",
  },
  {
    name: "a read needs no quorum",
    file: "reads.ts",
    before: "this.#queue.takeConfirmed(this.#tracker.quorumRound())",
    after: "this.#queue.takeConfirmed(this.#queue.round)",
  },
  {
    name: "leases are ignored by voters",
    file: "machine.ts",
    before:
      'if (readOnly === "lease") return this.replica.ticks - this.#heardLeaderTick < electionTicks;',
    after: 'if (readOnly === "lease") return false;',
  },
  {
    name: "a lease lasts too long",
    file: "reads.ts",
    before: "const leaseTicks = electionTicks - 2 - Math.floor(electionTicks / 10);",
    after: "const leaseTicks = 2 * electionTicks;",
  },
  {
    name: "a lease outlives an order to campaign",
    file: "reads.ts",
    before: "if (this.leaseWaived) return false;",
    after: "if (this.#replica.id < 0n) return false;",
  },
  {
    name: "a restarted voter does not keep still",
    file: "machine.ts",
    before: "heardLeaderTick = 0;",
    after: "heardLeaderTick = -1000;",
    maxSeeds: 20_000,
    tests: "advance-election.test.ts",
  },
  {
    name: "several configuration changes may be pending",
    file: "leader.ts",
    before: "if (this.#pendingConfIndex > log.applied)",
    after: "if (this.#pendingConfIndex < 0)",
  },
  {
    name: "a machine campaigns with configuration changes to apply",
    file: "machine.ts",
    before: "if (replica.log.hasUnappliedConfChange()) {",
    after: "if (replica.id < 0n) {",
    maxSeeds: 20_000,
  },
  {
    name: "one half of a joint configuration decides on commits",
    file: "tracker.ts",
    before:
      "return Math.min(this.#majorityOf(this.#incoming, field), this.#majorityOf(this.#outgoing, field));",
    after: "return this.#majorityOf(this.#incoming, field) + 0 * this.#outgoing.length;",
    maxSeeds: 20_000,
  },
  {
    name: "one half of a joint configuration decides on votes",
    file: "tracker.ts",
    before: "const other = majorityVote(outgoing, votes);",
    after: "const other = majorityVote(incoming.length >= 0 ? incoming : outgoing, votes);",
    maxSeeds: 20_000,
  },
  {
    name: "a snapshot's configuration is in force before the snapshot is",
    file: "replica.ts",
    before: "this.#restoredConfs.push({ index, conf: checkConfState(conf) });",
    after:
      "this.#restoredConfs.push({ index, conf: checkConfState(conf) });\n    this.#conf = conf;",
  },
  {
    name: "a Ready that is out goes on filling",
    file: "raft.ts",
    before: "messagesAfterSync.length > 0 ? messagesAfterSync : NONE",
    after: "messagesAfterSync",
  },
  {
    name: "votes of an old campaign count",
    file: "machine.ts",
    before: "this.#votes = new Map();",
    after:
      "this.#votes = (replica as unknown as { votes?: Map<bigint, boolean> }).votes ??= new Map();",
  },
  {
    name: "acknowledgements of an old term count",
    file: "machine.ts",
    before: "replica.notifyStale(message);\n      return false;",
    after:
      "replica.notifyStale(message);\n      return message.type === raftpb.MessageType.MsgAppResp;",
    tests: "commit.test.ts",
  },
  {
    name: "a lost hard state hides committed configuration changes",
    file: "log.ts",
    before: "provenCommit = Math.max(provenCommit, lastConfChange);",
    after: "provenCommit = Math.max(provenCommit, 0 * lastConfChange);",
    by: "scenarios",
    tests: "scenarios.test.ts",
  },
  {
    name: "the window is never freed",
    file: "leader.ts",
    before: "progress.inflights.freeUpTo(index);",
    after: "progress.flowPaused = false;",
  },
  {
    name: "a pause is never lifted",
    file: "leader.ts",
    before: "progress.flowPaused = false;",
    after: "progress.recentActive = true;",
  },
  {
    name: "a handover is never given up",
    file: "leader.ts",
    before: "if (this.#transferee === 0n) return;\n    this.#replica.note(",
    after: "if (this.#transferee >= 0n) return;\n    this.#replica.note(",
  },
  {
    name: "a joint configuration is not left",
    file: "machine.ts",
    before: "this.leading?.leaveJointIfDue();",
    after: "",
  },
  {
    name: "a refused vote teaches nothing",
    file: "replica.ts",
    before: "if (!refusal.reject || refusal.commit <= log.committed",
    after: "if (log.committed >= 0 || !refusal.reject || refusal.commit <= log.committed",
    maxSeeds: 20_000,
  },
  {
    name: "a failed snapshot is not sent again",
    file: "leader.ts",
    before: "if (!ok) progress.pendingSnapshot = 0;\n    progress.becomeProbe();",
    after: "if (!ok) return;\n    progress.becomeProbe();",
  },
];
