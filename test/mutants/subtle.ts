/**
 * Subtle bugs: those that earlier tests missed, or found only under options, and what stands next
 * to them.
 */
import { SOURCE_BUGS } from "@quorate/sim";
import type { Mutant } from "./mutant.ts";

const RAFT_TESTS = ["packages/raft/test/*.test.ts"];
const WAL_TESTS = ["packages/wal/test/*.test.ts"];
const MVCC_TESTS = [
  "packages/store/test/mvcc*.test.ts",
  "packages/store/test/key*.test.ts",
  "packages/store/test/compaction*.test.ts",
];

export const SUBTLE: readonly Mutant[] = [
  {
    name: "a new leader ignores configuration changes that are not committed",
    file: "raft/src/leader.ts",
    before: "this.#pendingConfIndex = lastIndex;",
    after: "this.#pendingConfIndex = 0;",
    tests: RAFT_TESTS,
    sim: "default",
  },
  {
    name: "what a member has acknowledged survives a new election",
    file: "raft/src/leader.ts",
    before: "this.tracker = new Tracker(conf, lastIndex + 1, config);",
    after:
      "const owner = replica as unknown as { tracker?: Tracker };\n" +
      "    owner.tracker ??= new Tracker(conf, lastIndex + 1, config);\n" +
      "    owner.tracker.configure(conf, lastIndex);\n" +
      "    for (const one of owner.tracker.all) one.becomeProbe();\n" +
      "    this.tracker = owner.tracker;",
    tests: RAFT_TESTS,
    sim: "default",
  },
  {
    name: "a commit index is learned from a refusal without comparing terms",
    file: "raft/src/replica.ts",
    before: "!log.matches(refusal.commit, refusal.logTerm)",
    after: "refusal.commit > log.lastIndex",
    tests: RAFT_TESTS,
    sim: "default",
  },
  {
    name: "the configuration is kept without its learners",
    file: "store/src/backend/meta.ts",
    before: "raftpb.ConfState.encode(position.confState)",
    after: "raftpb.ConfState.encode({ ...position.confState, learners: [] })",
    tests: [
      "packages/store/test/store.test.ts",
      "packages/member/test/configuration.test.ts",
      "packages/server/test/membership*.test.ts",
    ],
    sim: "default",
  },
  {
    name: "a segment is left for the next one without a sync",
    file: "wal/src/wal.ts",
    before: "      old.truncate(this.#offset);\n      this.#syncs.now(old);",
    after: "      old.truncate(this.#offset);",
    tests: WAL_TESTS,
    sim: "default",
  },
  {
    name: "a new segment begins without the state",
    file: "wal/src/wal.ts",
    before:
      "if (this.#hardState) this.#encoder.record(RecordType.State, raftpb.HardState.encode(this.#hardState));",
    after: "",
    tests: WAL_TESTS,
    sim: "no",
  },
  {
    name: "what a failed sync left is taken for durable",
    file: "wal/src/opening.ts",
    before: "makeDurable(tail, end.durableBytes, end.offset);",
    after: "makeDurable(tail, end.offset, end.offset);",
    tests: WAL_TESTS,
    sim: "no",
  },
  {
    name: "a flipped bit is taken for a torn write",
    file: "wal/src/tear.ts",
    before: 'if (!hasTornSector(file, offset, stop)) return { kind: "damaged", reason };',
    after:
      'if (offset < 0 && !hasTornSector(file, offset, stop)) return { kind: "damaged", reason };',
    tests: WAL_TESTS,
    sim: "default",
  },
  {
    name: "a tombstone at exactly the compact revision goes",
    file: "store/src/mvcc/key-index.ts",
    before: "this.mainAt(place) < at;",
    after: "this.mainAt(place) <= at;",
    tests: MVCC_TESTS,
    sim: "no",
  },
  {
    name: "a key hangs on its old lease again after a restart",
    file: "store/src/mvcc/restore.ts",
    before: "if (before !== 0n && before !== lease) leases.detach(before, key);",
    after: "if (before !== 0n && lease !== 0n && before !== lease) leases.detach(before, key);",
    tests: [
      "packages/store/test/lease*.test.ts",
      "packages/store/test/store*.test.ts",
      "packages/store/test/mvcc*.test.ts",
    ],
    sim: "default",
  },
  {
    name: "a range end of one zero byte is taken for a key",
    file: "store/src/mvcc/key-range.ts",
    before: "rangeEnd.length === 1 && rangeEnd[0] === 0 ? undefined : toLatin1(rangeEnd)",
    after: "rangeEnd.length === 0 ? undefined : toLatin1(rangeEnd)",
    tests: ["packages/store/test/*.test.ts"],
    sim: "default",
  },
  {
    name: "a comparison over a range holds if it does for some key",
    file: "store/src/requests/compare.ts",
    before: "    return all;\n  };\n  yield* view.each(",
    after: "    return !all;\n  };\n  yield* view.each(",
    tests: ["packages/store/test/*.test.ts"],
    sim: "default",
  },
  {
    name: "a checkpoint is forgotten by a second change of the leader",
    file: "member/src/lease/keeper.ts",
    before: "checkpoints: lease.remainingSeconds > 0 ? 1 : 0,",
    after: "checkpoints: 0,",
    tests: ["packages/server/test/lease*.test.ts"],
    sim: "default",
  },
  {
    name: "request ids repeat after a restart",
    file: "member/src/loop/proposals.ts",
    before: "(BigInt(Math.trunc(startWallMs)) & 0xff_ffff_ffffn) << 8n;",
    after: "(BigInt(Math.trunc(0 * startWallMs)) & 0xff_ffff_ffffn) << 8n;",
    tests: ["packages/member/test/request-ids.test.ts"],
    sim: "no",
  },
  {
    name: "a watch that lags is notified of progress",
    file: "member/src/watch/watch-stream.ts",
    before: "if (!watcher.isSynced || revision < watcher.startRevision) return;",
    after: "if (revision < watcher.startRevision) return;",
    tests: ["packages/server/test/watch*.test.ts"],
    sim: "default",
  },
  {
    name: "a new leader does not add an election timeout to leases",
    file: "member/src/lease/keeper.ts",
    before: "clock.monotonicMs() + this.#options.extendMs + remaining * 1000",
    after: "clock.monotonicMs() + 0 * this.#options.extendMs + remaining * 1000",
    tests: ["packages/server/test/lease*.test.ts"],
    sim: "default",
  },
  {
    name: "a read joins a round of reads that was asked before it",
    file: "member/src/loop/reads.ts",
    before: "      this.#arrived.push({ resolve, reject, deadlineMs });\n",
    after: `      const waiter = { resolve, reject, deadlineMs };
      const asked = [...this.#rounds.values()].at(-1);
      if (asked !== undefined && asked.index === undefined) {
        asked.waiters.push(waiter);
        return;
      }
      this.#arrived.push(waiter);
`,
    tests: ["packages/member/test/read-rounds.test.ts"],
    sim: "default",
  },
  {
    name: "a snapshot that is not ahead is refused without a response of Raft's",
    file: "member/src/apply/snapshot-receiver.ts",
    before: "      messages.step([message]);\n      throw new Error(",
    after: "      throw new Error(",
    tests: ["packages/member/test/marks.test.ts"],
    sim: "no",
  },
  {
    name: "a member that joins takes part before its log is begun",
    file: "member/src/bootstrap.ts",
    before: "  wal.append(hardState, entries);\n  await wal.sync();\n",
    after: "  if (entries.length > 0) wal.append(hardState, entries);\n  await wal.sync();\n",
    tests: ["packages/server/test/membership-starts.test.ts"],
    sim: "no",
  },
  {
    name: "reads are released before a snapshot is installed",
    file: "member/src/loop/loop.ts",
    before:
      "    for (const read of ready.readStates) reads.answered(read.context, read.index);\n    const hardState",
    after:
      "    for (const read of ready.readStates) reads.answered(read.context, read.index);\n" +
      "    reads.release(snapshot.metadata!.index);\n    const hardState",
    tests: ["packages/server/test/reads-at-install.test.ts"],
    sim: "default",
  },
  {
    name: "a learner is promoted by what was sent to it, not by what it has",
    file: "member/src/membership/reconfiguration.ts",
    before: "if (learner.match >= own.match * READY_SHARE) return;",
    after: "if (learner.next >= own.match * READY_SHARE) return;",
    tests: [
      "packages/server/test/reconfiguration*.test.ts",
      "packages/server/test/member*.test.ts",
      "packages/server/test/promot*.test.ts",
    ],
    sim: "default",
  },
  {
    name: "a buffer for small chunks is reused before its content was taken",
    file: "transport/src/frames.ts",
    before: "    this.#chunks.push(chunk);",
    after:
      "    const owner = this as unknown as { small?: Uint8Array };\n" +
      "    const small = (owner.small ??= new Uint8Array(512));\n" +
      "    if (chunk.length > small.length) this.#chunks.push(chunk);\n" +
      "    else {\n" +
      "      small.set(chunk);\n" +
      "      this.#chunks.push(small.subarray(0, chunk.length));\n" +
      "    }",
    tests: ["packages/transport/test/frames.test.ts"],
    sim: "default",
  },
  {
    name: "a full member waits for compactions for ever",
    file: "member/src/space/space-keeper.ts",
    before:
      "return store.current.mvcc.isCompacting && nowMs - this.#scarceSinceMs < COMPACTION_WAITS_MS;",
    after: "return store.current.mvcc.isCompacting && nowMs > 0;",
    tests: ["packages/server/test/space.test.ts"],
    sim: "no",
  },
  {
    name: "the commit of entries of earlier terms makes room for uncommitted ones",
    ...SOURCE_BUGS["earlier-terms-count-as-uncommitted"],
    tests: RAFT_TESTS,
    sim: "default",
  },
  {
    name: "a permission that is revoked while the keys of a lease are checked passes",
    file: "store/src/auth/authorize.ts",
    before: 'return identity.authRevision < state.revision ? "AuthOldRevision" : undefined;',
    after: "return undefined;",
    tests: ["packages/store/test/authorize.test.ts"],
    // The call was permitted when it began, and its entry is judged again when it is applied.
    sim: "no",
  },
  {
    name: "the log behind a snapshot stays only while the snapshot is sent",
    ...SOURCE_BUGS["log-goes-while-a-snapshot-arrives"],
    tests: ["packages/member/test/marks.test.ts"],
    sim: "default",
  },
  {
    name: "the leadership counts as confirmed from the answer on, not from the question",
    ...SOURCE_BUGS["confirmed-from-the-answer"],
    tests: ["packages/member/test/lease-keeper.test.ts"],
    sim: "default",
  },
];
