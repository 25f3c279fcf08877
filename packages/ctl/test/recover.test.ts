/** Whose data a cluster with a lost quorum goes on with, and when it may not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Verdict, verdictOf, type Witness } from "../src/recover/verdict.ts";

const members = ["a", "b", "c", "d", "e"].map((name, i) => ({
  ID: BigInt(i + 1),
  name,
  isLearner: false,
}));

function witness(name: string, term: number, index: number, more: Partial<Witness> = {}): Witness {
  return {
    id: members.find((one) => one.name === name)!.ID,
    clusterId: 9n,
    place: `/data/${name}`,
    isRunning: false,
    hasLeader: false,
    term,
    index,
    commit: index,
    revision: index,
    members,
    ...more,
  };
}

const decided = (left: readonly Witness[], lost: readonly string[], chosen = ""): string => {
  const verdict: Verdict | string = verdictOf(left, lost, chosen);
  return typeof verdict === "string" ? verdict : verdict.survivor.place;
};

const lost = ["c", "d", "e"];

test("the survivor has the highest term and index", () => {
  const [a, b] = [witness("a", 2, 100), witness("b", 3, 120)];
  assert.equal(decided([a, b], lost), "/data/b");
  assert.deepEqual(
    (verdictOf([a, b], lost, "") as Verdict).others.map(({ name }) => name),
    ["a", "c", "d", "e"],
  );
  // By id too, as "member list" prints it.
  assert.equal(decided([a, b], ["3", "D".toLowerCase(), "5"]), "/data/b");
});

test("what is ambiguous is refused, until it is chosen", () => {
  const [a, b] = [witness("a", 3, 100), witness("b", 2, 120)];
  assert.match(decided([a, b], lost), /^one member has the highest term and another/);
  assert.equal(decided([a, b], lost, "a"), "/data/a");
  assert.match(decided([a, b], lost, "c"), /^c is not among those given/);
});

test("a member of which nothing is known may have more", () => {
  const [a, b] = [witness("a", 2, 100), witness("b", 2, 120)];
  assert.match(decided([a, b], ["c", "e"]), /^d may have more .* add --lost d$/);
  assert.match(decided([a, b], []), /^c, d, e may have more .* --lost c --lost d --lost e$/);
  assert.match(
    decided([a, b], ["x"]),
    /^no member has the id or name "x": there are a, b, c, d, e/,
  );
});

test("where nothing is lost, nothing is done", () => {
  const [a, b, c] = [witness("a", 2, 100), witness("b", 2, 120), witness("c", 2, 90)];
  assert.match(decided([a, b, c], ["d", "e"]), /^3 of 5 voters have their data.*start them/);
  const led = witness("b", 2, 120, { hasLeader: true, isRunning: true });
  assert.match(decided([led], lost), /knows a leader: nothing is lost/);
  assert.match(decided([], lost), /^no member is left: restore a backup/);
});

test("what cannot be compared is refused", () => {
  const [a, b] = [witness("a", 2, 100), witness("b", 2, 120)];
  assert.match(decided([a, { ...b, clusterId: 8n }], lost), /give those of one cluster$/);
  assert.match(decided([a, { ...b, id: a.id }], lost), /two of those given are of the member 1/);
  assert.match(decided([a, { ...b, isRunning: true }], lost), /some of those given run/);
  const without = members.filter(({ name }) => name !== "a");
  assert.match(decided([a, { ...b, members: without }], lost), /\/data\/a is of a member that/);
});

test("learners count for no quorum, and can survive", () => {
  const some = members.map((one) => ({ ...one, isLearner: one.name === "a" }));
  const a = witness("a", 2, 100, { members: some });
  assert.equal(decided([a], ["b", "c", "d", "e"]), "/data/a");
});
