/** The checks of a change of the membership: at the quorum, and at the age of a link. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  HEALTH_INTERVAL_MS,
  type QuorumView,
  refuseAdd,
  refusePromote,
  refuseRemove,
} from "../src/membership/quorum-checks.ts";

const NOW_MS = 100_000;

/**
 * A view of member 1. Each of the others is a voter ("v"), one that was never started ("n") or a
 * learner ("l"), and since when it is connected, in milliseconds before now; undefined: it is not.
 */
function viewOf(...others: [kind: "v" | "n" | "l", upMs: number | undefined][]): QuorumView {
  const members = [["v", 0] as const, ...others].map(([kind], i) => ({
    id: BigInt(i + 1),
    name: kind === "n" ? "" : `m${i + 1}`,
    peerUrls: [],
    clientUrls: [],
    isLearner: kind === "l",
  }));
  const peers = others.map(([, upMs], i) => ({
    id: BigInt(i + 2),
    urls: [],
    activeSinceMs: upMs === undefined ? undefined : NOW_MS - upMs,
    roundTripMs: undefined,
  }));
  return { selfId: 1n, nowMs: NOW_MS, members, peers };
}

const OLD = HEALTH_INTERVAL_MS;
const YOUNG = HEALTH_INTERVAL_MS - 1;

test("a voter is added where the others are a quorum of the larger cluster, connected for the whole interval", () => {
  assert.equal(refuseAdd(viewOf(["v", OLD], ["v", OLD]), false), undefined);
  assert.equal(refuseAdd(viewOf(["v", OLD], ["v", YOUNG]), false), "Unhealthy");
  assert.equal(refuseAdd(viewOf(["v", OLD], ["v", undefined]), false), "Unhealthy");
  assert.equal(refuseAdd(viewOf(["v", OLD], ["n", OLD]), false), "MemberNotEnoughStarted");
  assert.equal(refuseAdd(viewOf(), false), undefined, "a cluster of one grows");
  assert.equal(refuseAdd(viewOf(["v", OLD]), false), undefined);
  assert.equal(refuseAdd(viewOf(["n", OLD]), false), "MemberNotEnoughStarted");
});

test("a learner is added where a quorum of today is connected", () => {
  assert.equal(refuseAdd(viewOf(["v", OLD], ["v", undefined]), true), undefined);
  assert.equal(refuseAdd(viewOf(["v", YOUNG], ["v", undefined]), true), "Unhealthy");
});

test("a voter is removed where those who stay are a quorum, started and connected; one that is down always", () => {
  assert.equal(refuseRemove(viewOf(["v", OLD], ["v", OLD]), 3n), undefined);
  assert.equal(refuseRemove(viewOf(["v", YOUNG], ["v", OLD]), 3n), "Unhealthy");
  assert.equal(refuseRemove(viewOf(["v", OLD], ["v", undefined]), 3n), undefined);
  assert.equal(refuseRemove(viewOf(["n", OLD], ["v", OLD]), 3n), "MemberNotEnoughStarted");
  assert.equal(refuseRemove(viewOf(["v", undefined], ["l", OLD]), 3n), undefined);
  assert.equal(refuseRemove(viewOf(["v", OLD], ["v", YOUNG]), 1n), "Unhealthy");
});

test("a learner is promoted where those who are connected now are a quorum with it", () => {
  assert.equal(refusePromote(viewOf(["v", 0], ["l", 0]), 3n), undefined);
  assert.equal(refusePromote(viewOf(["v", undefined], ["l", 0]), 3n), undefined);
  assert.equal(refusePromote(viewOf(["n", 0], ["l", 0]), 3n), undefined);
  assert.equal(refusePromote(viewOf(["v", undefined], ["l", undefined]), 3n), "Unhealthy");
  assert.equal(refusePromote(viewOf(["n", 0], ["n", 0], ["l", 0]), 4n), "MemberNotEnoughStarted");
});
