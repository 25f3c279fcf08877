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
    file: "replicate.ts",
    before: "const index = core.tracker.quorumMatch();",
    after:
      "if (core.self) core.self.match = core.log.lastIndex;\n  const index = core.tracker.quorumMatch();",
  },
  {
    name: "a vote is not synced",
    file: "raft.ts",
    before: "mustSync: votes || entries.length > 0",
    after: "mustSync: entries.length > 0",
  },
  {
    name: "a vote is sent before it is durable",
    file: "election.ts",
    before: "  core.sendAfterSync(response);\n}",
    after: "  core.send(response);\n}",
  },
  {
    name: "a vote is asked for before the own one is durable",
    file: "election.ts",
    before: "else core.sendAfterSync(request);",
    after: "else core.send(request);",
    by: "scenarios",
  },
  {
    name: "the own vote counts before it is durable",
    file: "raft.ts",
    before: "this.#selfVotes[0].number <= readyNumber",
    after: "this.#selfVotes[0].number <= readyNumber + 3",
    maxSeeds: 20_000,
  },
  {
    name: "an append is acknowledged before it is durable",
    file: "follow.ts",
    before: "  response.index = index;\n  core.sendAfterSync(response);",
    after: "  response.index = index;\n  core.send(response);",
  },
  {
    name: "entries of older terms are committed by counting",
    file: "replicate.ts",
    before: "if (index <= log.committed || log.term(index) !== core.term) return false;",
    after: "if (index <= log.committed) return false;",
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
    file: "election.ts",
    before: "(core.vote === 0n && core.leader === 0n) ||",
    after: "core.leader === 0n ||",
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
    file: "replicate.ts",
    before: "heartbeat.commit = Math.min(progress.match, core.log.committed);",
    after: "heartbeat.commit = core.log.committed;",
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
    file: "read.ts",
    before: "if (!core.committedInTerm) core.reads.hold(read);",
    after: "if (core.id < 0n) core.reads.hold(read);",
  },
  {
    name: "a read joins the round that is under way",
    file: "read-only.ts",
    before: "index, round: this.#round + 1 });",
    after: "index, round: Math.max(this.#round, 1) });",
  },
  {
    name: "a read needs no quorum",
    file: "read.ts",
    before: "core.reads.takeConfirmed(core.tracker.quorumRound())",
    after: "core.reads.takeConfirmed(core.reads.round)",
  },
  {
    name: "leases are ignored by voters",
    file: "step.ts",
    before:
      'if (readOnly === "lease") return core.isLeader || core.ticks - core.heardLeaderTick < electionTicks;',
    after: 'if (readOnly === "lease") return false;',
  },
  {
    name: "a lease lasts too long",
    file: "read.ts",
    before: "const leaseTicks = electionTicks - 2 - Math.floor(electionTicks / 10);",
    after: "const leaseTicks = 2 * electionTicks;",
  },
  {
    name: "a lease outlives an order to campaign",
    file: "read.ts",
    before: "if (core.leaseWaived) return false;",
    after: "if (core.id < 0n) return false;",
  },
  {
    name: "a restarted voter does not keep still",
    file: "core.ts",
    before: "heardLeaderTick = 0;",
    after: "heardLeaderTick = -1000;",
    maxSeeds: 20_000,
    tests: "advance-election.test.ts",
  },
  {
    name: "several configuration changes may be pending",
    file: "propose.ts",
    before: "if (core.pendingConfIndex > core.log.applied) {",
    after: "if (core.pendingConfIndex < 0) {",
  },
  {
    name: "a machine campaigns with configuration changes to apply",
    file: "election.ts",
    before: "if (core.log.hasUnappliedConfChange()) {",
    after: "if (core.id < 0n) {",
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
    file: "quorum.ts",
    before: "const other = majorityVote(outgoing, votes);",
    after: "const other = majorityVote(incoming.length >= 0 ? incoming : outgoing, votes);",
    maxSeeds: 20_000,
  },
  {
    name: "a snapshot's configuration is in force before the snapshot is",
    file: "follow.ts",
    before: "core.restoredConfs.push({ index, conf: checkConfState(conf) });",
    after:
      "core.restoredConfs.push({ index, conf: checkConfState(conf) });\n  core.tracker.configure(conf, index);",
  },
  {
    name: "a Ready that is out goes on filling",
    file: "raft.ts",
    before: "core.messagesAfterSync.length > 0 ? core.messagesAfterSync : NONE",
    after: "core.messagesAfterSync",
  },
  {
    name: "votes of an old campaign count",
    file: "roles.ts",
    before: "  core.tracker.resetVotes();\n  core.tracker.resetProgress(",
    after: "  core.tracker.resetProgress(",
  },
  {
    name: "acknowledgements of an old term count",
    file: "step.ts",
    before: "    notifyStale(core, message);\n    return false;",
    after: "    notifyStale(core, message);\n    return message.type === MsgAppResp;",
    tests: "commit.test.ts",
  },
  {
    name: "a lost hard state hides committed configuration changes",
    file: "initial-log.ts",
    before: "provenCommit = Math.max(provenCommit, lastConfChange);",
    after: "provenCommit = Math.max(provenCommit, 0 * lastConfChange);",
    by: "scenarios",
    tests: "scenarios.test.ts",
  },
  {
    name: "the window is never freed",
    file: "lead.ts",
    before: "progress.inflights.freeUpTo(index);",
    after: "progress.flowPaused = false;",
  },
  {
    name: "a pause is never lifted",
    file: "lead.ts",
    before: "progress.flowPaused = false;",
    after: "progress.recentActive = true;",
  },
  {
    name: "a handover is never given up",
    file: "step.ts",
    before: "    if (core.isLeader && core.leadTransferee !== 0n) {",
    after: "    if (core.isLeader && core.leadTransferee < 0n) {",
  },
  {
    name: "a joint configuration is not left",
    file: "raft.ts",
    before: "    restoreConfs(this.#core);\n    leaveJointIfDue(this.#core);",
    after: "    restoreConfs(this.#core);",
  },
  {
    name: "a refused vote teaches nothing",
    file: "election.ts",
    before: "if (!refusal.reject || refusal.commit <= log.committed",
    after: "if (log.committed >= 0 || !refusal.reject || refusal.commit <= log.committed",
    maxSeeds: 20_000,
  },
  {
    name: "a failed snapshot is not sent again",
    file: "lead.ts",
    before: "  if (!ok) progress.pendingSnapshot = 0;\n  progress.becomeProbe();",
    after: "  if (!ok) return;\n  progress.becomeProbe();",
  },
];
