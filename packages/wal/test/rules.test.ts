/** What follows what in a log: indexes, terms and commits, at their bounds. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { raftpb } from "@quorate/proto";
import { LogRules } from "../src/format.ts";

const entry = (index: number, term: number) => raftpb.Entry.create({ index, term });
const state = (term: number, commit: number) => raftpb.HardState.create({ term, commit });

it("terms do not fall from an entry to the next, but an entry may be replaced by one of a lower term", () => {
  const rules = new LogRules(0);
  assert.equal(rules.entry(entry(1, 3)), undefined);
  assert.equal(rules.entry(entry(2, 2)), "entry 2 has term 2, the one before has 3");
  assert.equal(rules.entry(entry(2, 3)), undefined);
  assert.equal(rules.entry(entry(1, 2)), undefined, "it conflicted with a leader's");
  assert.equal(rules.entry(entry(2, 2)), undefined);
  assert.equal(rules.entry(entry(4, 2)), "entry 4 follows entry 2");
});

it("a state's term and commit do not fall, and its commit is within the log", () => {
  const rules = new LogRules(0);
  rules.entry(entry(1, 3));
  rules.entry(entry(2, 3));
  assert.equal(rules.state(state(3, 1)), undefined);
  assert.equal(rules.state(state(2, 1)), "the term goes back from 3 to 2");
  assert.equal(rules.state(state(3, 0)), "the commit index goes back from 1 to 0");
  assert.equal(rules.state(state(3, 3)), "the commit index is 3, the last entry 2");
  assert.equal(rules.state(state(3, 2)), undefined);
  assert.equal(rules.entry(entry(2, 3)), "entry 2 would replace a committed one (commit is 2)");
  assert.equal(rules.entry(entry(3, 3)), undefined);
});

it("an entry has a type, an index and a term, and a change of the configuration has data", () => {
  const { EntryConfChange, EntryConfChangeV2 } = raftpb.EntryType;
  const rules = new LogRules(4);
  assert.equal(rules.entry(entry(6, 1)), "entry 6 follows entry 4");
  assert.equal(rules.entry(entry(0, 1)), "an entry has index 0 and term 1");
  assert.equal(rules.entry(entry(5, 0)), "an entry has index 5 and term 0");
  for (const type of [-1, EntryConfChangeV2 + 1])
    assert.equal(rules.entry({ ...entry(5, 1), type }), `entry 5 has an unknown type ${type}`);
  const change = { ...entry(5, 1), type: EntryConfChange };
  assert.equal(rules.entry(change), "entry 5 changes the configuration to nothing");
  assert.equal(rules.entry({ ...change, data: Uint8Array.of(1) }), undefined);
  assert.equal(rules.entry({ ...entry(6, 1), type: EntryConfChangeV2 }), undefined);
});

it("a state that opens a log stands for the entries before it, and a mark beyond the log for all", () => {
  const rules = new LogRules(2);
  assert.equal(rules.state(state(0, 2)), "a state has term 0");
  assert.equal(rules.state(state(1, 5)), "the commit index is 5, the last entry 2");
  assert.equal(rules.state(state(1, 5), true), undefined);
  assert.equal(rules.state(state(1, 5)), undefined, "the same again");
  assert.equal(rules.lastIndex, 5);
  rules.snapshot(4, 9);
  rules.snapshot(5, 9);
  assert.equal(rules.entry(entry(6, 3)), undefined);
  rules.snapshot(9, 7);
  assert.equal(rules.lastIndex, 9);
  assert.equal(rules.entry(entry(10, 6)), "entry 10 has term 6, the one before has 7");
  assert.equal(rules.entry(entry(10, 7)), undefined);
});
