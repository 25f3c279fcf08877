/** --force-new-cluster: which entries leave one member as the only voter. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { raftpb } from "@quorate/proto";
import type { Membership } from "../src/membership/membership.ts";
import { type SurvivorState, survivorEntries } from "../src/membership/sole-survivor.ts";

const { ConfChangeAddLearnerNode, ConfChangeAddNode, ConfChangeRemoveNode, ConfChangeUpdateNode } =
  raftpb.ConfChangeType;

function entry(index: number, type: raftpb.ConfChangeType, nodeId: bigint): raftpb.Entry {
  const data = raftpb.ConfChange.encode(raftpb.ConfChange.create({ type, nodeId }));
  return { type: raftpb.EntryType.EntryConfChange, term: 1, index, data };
}

/** Members by id: whether each is a learner. */
function changes(
  members: Readonly<Record<string, boolean>>,
  entries: readonly raftpb.Entry[],
  more: Partial<SurvivorState> = {},
) {
  const listed = Object.entries(members).map(([id, isLearner]) => ({ id: BigInt(id), isLearner }));
  const made = survivorEntries({
    memberId: 1n,
    membership: { members: () => listed } as unknown as Membership,
    appliedIndex: 10,
    entries,
    lastIndex: 20,
    term: 7,
    ...more,
  });
  return made?.map(({ index, term, type, data }) => {
    assert.deepEqual([term, type], [7, raftpb.EntryType.EntryConfChange]);
    const change = raftpb.ConfChange.decode(data);
    return [index, change.type, change.nodeId];
  });
}

test("the others are removed, and a learner becomes a voter first", () => {
  assert.deepEqual(changes({ 1: false, 2: false, 3: true }, []), [
    [21, ConfChangeRemoveNode, 2n],
    [22, ConfChangeRemoveNode, 3n],
  ]);
  assert.deepEqual(changes({ 1: true, 2: false }, []), [
    [21, ConfChangeAddNode, 1n],
    [22, ConfChangeRemoveNode, 2n],
  ]);
  assert.deepEqual(changes({ 1: false }, []), []);
  assert.equal(changes({ 2: false }, []), undefined);
});

test("what the log has behind the store counts too", () => {
  assert.deepEqual(
    changes({ 1: true, 2: false, 4: false }, [
      entry(10, ConfChangeRemoveNode, 1n),
      entry(11, ConfChangeAddLearnerNode, 3n),
      entry(12, ConfChangeAddNode, 1n),
      entry(13, ConfChangeRemoveNode, 2n),
      entry(14, ConfChangeUpdateNode, 5n),
      { ...entry(15, ConfChangeRemoveNode, 4n), type: raftpb.EntryType.EntryNormal },
    ]),
    [
      [21, ConfChangeRemoveNode, 4n],
      [22, ConfChangeRemoveNode, 3n],
    ],
  );
  assert.equal(changes({ 1: false }, [entry(11, ConfChangeRemoveNode, 1n)]), undefined);
  assert.deepEqual(
    changes({ 1: false }, [entry(11, ConfChangeAddLearnerNode, 1n)]),
    [],
    "a voter that is added as a learner stays a voter",
  );
});
