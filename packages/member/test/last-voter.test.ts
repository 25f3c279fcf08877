/** Which commits are durable before anybody hears of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, raftpb } from "@quorate/proto";
import { LastVoter } from "../src/loop/loop.ts";

const { ConfChangeAddNode, ConfChangeRemoveNode } = raftpb.ConfChangeType;
const { EntryConfChange, EntryConfChangeV2, EntryNormal } = raftpb.EntryType;

const normal = (index: number): raftpb.Entry => ({
  type: EntryNormal,
  term: 1,
  index,
  data: EMPTY,
});

function change(index: number, type: raftpb.ConfChangeType, isV2 = false): raftpb.Entry {
  const one = { nodeId: 2n, type };
  const data = isV2
    ? raftpb.ConfChangeV2.encode({ transition: 0, changes: [one], context: EMPTY })
    : raftpb.ConfChange.encode({ id: 0n, ...one, context: EMPTY });
  return { type: isV2 ? EntryConfChangeV2 : EntryConfChange, term: 1, index, data };
}

const removal = (index: number) => change(index, ConfChangeRemoveNode);

test("the commit of a removal that leaves one voter is to be saved, once", () => {
  for (const entry of [removal(4), change(4, ConfChangeRemoveNode, true)]) {
    const last = new LastVoter(2, 2);
    last.wrote([normal(3), entry, normal(5)]);
    assert.equal(last.mustSave(3, 2, 2), false);
    assert.equal(last.mustSave(4, 3, 2), true);
    last.saved(4);
    assert.equal(last.mustSave(5, 3, 2), false);
  }
});

test("other commits are not: of an addition, of a removal that leaves more, of what does not decode", () => {
  const addition = new LastVoter(0, 0);
  addition.wrote([change(1, ConfChangeAddNode)]);
  assert.equal(addition.mustSave(1, 0, 2), false);
  const three = new LastVoter(0, 0);
  three.wrote([removal(1)]);
  assert.equal(three.mustSave(1, 0, 3), false);
  const malformed = new LastVoter(0, 0);
  malformed.wrote([{ ...removal(1), data: Uint8Array.of(0xff) }]);
  assert.equal(malformed.mustSave(1, 0, 2), false);
});

test("two removals that are committed before the first is applied leave one voter of three", () => {
  const last = new LastVoter(0, 0);
  last.wrote([removal(1)]);
  assert.equal(last.mustSave(1, 0, 3), false);
  last.wrote([normal(2), removal(3)]);
  assert.equal(last.mustSave(3, 0, 3), true);
  // Applied, the first is no longer to come.
  assert.equal(last.mustSave(3, 1, 3), false);
  assert.equal(last.mustSave(3, 1, 2), true);
});

test("a removal that another leader's entries replace is forgotten", () => {
  const last = new LastVoter(0, 0);
  last.wrote([normal(1), removal(2)]);
  last.wrote([normal(2), normal(3)]);
  assert.equal(last.mustSave(3, 0, 2), false);
});

test("what the log holds at the start may be a removal, where there are few voters", () => {
  const last = new LastVoter(5, 8);
  assert.equal(last.mustSave(5, 5, 2), false);
  assert.equal(last.mustSave(6, 5, 2), true);
  assert.equal(last.mustSave(6, 5, 3), true);
  assert.equal(last.mustSave(6, 5, 4), false);
  last.saved(8);
  assert.equal(last.mustSave(9, 8, 2), false);
});
