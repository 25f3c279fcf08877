/** Configuration changes against a model that keeps sets, and what a change may never lead to. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { fromLatin1, raftpb } from "@quorate/proto";
import { bootstrapEntries, confChangeOf, isConfChange, toConfChangeV2 } from "../index.ts";
import {
  ConfChangeRefusal,
  changeConfState,
  checkConfState,
  isJoint,
  normalize,
  sameConfState,
} from "../src/confchange.ts";

const { ConfChangeAddNode, ConfChangeRemoveNode, ConfChangeUpdateNode, ConfChangeAddLearnerNode } =
  raftpb.ConfChangeType;

function randomChange(random: SeededRandom): raftpb.ConfChangeV2 {
  const transition = [0, 0, 0, 1, 2][random.below(5)];
  const kinds = [
    ConfChangeAddNode,
    ConfChangeAddNode,
    ConfChangeRemoveNode,
    ConfChangeAddLearnerNode,
    ConfChangeUpdateNode,
  ];
  const changes = Array.from({ length: random.below(4) }, () => ({
    type: kinds[random.below(kinds.length)],
    nodeId: BigInt(random.below(6)),
  }));
  return { transition, changes, context: new Uint8Array(0) };
}

/** Where each member stands: as etcd's rules say, member by member. */
function slowChange(
  conf: raftpb.ConfState,
  change: raftpb.ConfChangeV2,
): raftpb.ConfState | undefined {
  const joint = conf.votersOutgoing.length > 0;
  const leave = change.transition === 0 && change.changes.length === 0;
  if (leave) {
    if (!joint) return undefined;
    return normalize({
      ...conf,
      votersOutgoing: [],
      learners: [...conf.learners, ...conf.learnersNext],
      learnersNext: [],
      autoLeave: false,
    });
  }
  if (joint) return undefined;
  const enter = change.transition !== 0 || change.changes.length > 1;
  const next = structuredClone(conf);
  if (enter) {
    if (conf.voters.length === 0) return undefined;
    next.votersOutgoing = [...conf.voters];
    next.autoLeave = change.transition !== 2;
  }
  const without = (ids: bigint[], id: bigint): bigint[] => ids.filter((one) => one !== id);
  for (const { type, nodeId } of change.changes) {
    if (nodeId === 0n || type === ConfChangeUpdateNode) continue;
    if (type === ConfChangeAddLearnerNode && next.learners.includes(nodeId)) continue;
    next.voters = without(next.voters, nodeId);
    next.learners = without(next.learners, nodeId);
    next.learnersNext = without(next.learnersNext, nodeId);
    if (type === ConfChangeAddNode) next.voters.push(nodeId);
    else if (type === ConfChangeAddLearnerNode && next.votersOutgoing.includes(nodeId))
      next.learnersNext.push(nodeId);
    else if (type === ConfChangeAddLearnerNode) next.learners.push(nodeId);
  }
  return next.voters.length === 0 ? undefined : normalize(next);
}

test("random chains of changes lead where the model's do, and never to a configuration that contradicts itself", () => {
  let accepted = 0;
  for (let seed = 1; seed <= 500; seed++) {
    const random = new SeededRandom(BigInt(seed));
    let conf = raftpb.ConfState.create();
    for (let step = 0; step < 40; step++) {
      const change = randomChange(random);
      const changed = changeConfState(conf, change);
      const slow = slowChange(conf, change);
      assert.equal(
        changed instanceof ConfChangeRefusal,
        slow === undefined,
        `seed ${seed} step ${step}`,
      );
      if (changed instanceof ConfChangeRefusal) continue;
      assert.deepEqual(changed, slow, `seed ${seed} step ${step}`);
      checkConfState(changed);
      if (!isJoint(changed) && !isJoint(conf)) {
        const moved = [...conf.voters, ...changed.voters].filter(
          (id) => !(conf.voters.includes(id) && changed.voters.includes(id)),
        );
        assert.ok(moved.length <= 1, "a simple change moves one voter at most");
      }
      conf = changed;
      accepted++;
    }
  }
  assert.ok(accepted > 3000, `only ${accepted} changes were accepted`);
});

test("an unknown kind of change is refused, id 0 is passed over", () => {
  const conf = raftpb.ConfState.create({ voters: [1n] });
  assert.ok(
    changeConfState(
      conf,
      raftpb.ConfChangeV2.create({ changes: [{ type: 9, nodeId: 2n }] }),
    ) instanceof ConfChangeRefusal,
  );
  const same = changeConfState(
    conf,
    raftpb.ConfChangeV2.create({ changes: [{ type: ConfChangeAddNode, nodeId: 0n }] }),
  );
  assert.ok(!(same instanceof ConfChangeRefusal) && sameConfState(conf, same));
});

test("lists are put in order, and compared in order", () => {
  const conf = normalize(
    raftpb.ConfState.create({ voters: [3n, 1n, 1n, 2n], votersOutgoing: [9n, 3n] }),
  );
  assert.deepEqual(conf.voters, [1n, 2n, 3n]);
  assert.deepEqual(conf.votersOutgoing, [3n, 9n]);
  assert.equal(sameConfState(conf, { ...conf, autoLeave: true }), false);
  assert.equal(sameConfState(conf, { ...conf, learners: [7n] }), false);
});

test("bootstrap entries: one ConfChange a member, in term 1, with the member's context", () => {
  const entries = bootstrapEntries([
    { id: 7n, context: fromLatin1("seven") },
    { id: 5n, context: fromLatin1("five") },
  ]);
  assert.deepEqual(
    entries.map(({ type, term, index }) => ({ type, term, index })),
    [
      { type: raftpb.EntryType.EntryConfChange, term: 1, index: 1 },
      { type: raftpb.EntryType.EntryConfChange, term: 1, index: 2 },
    ],
  );
  const change = confChangeOf(entries[0])!;
  assert.deepEqual(change.changes, [{ type: ConfChangeAddNode, nodeId: 7n }]);
  assert.deepEqual(Buffer.from(change.context).toString(), "seven");
  assert.ok(isConfChange(entries[1]));
  assert.equal(confChangeOf({ type: 0, term: 1, index: 1, data: new Uint8Array(0) }), undefined);
  assert.equal(toConfChangeV2(change), change);
});
