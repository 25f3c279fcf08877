/** What follows what in a log: indexes, terms and commits, at their bounds. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { raftpb } from "@quorate/proto";
import { LogRules } from "../src/rules.ts";

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
