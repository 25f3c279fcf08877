/**
 * Ids of proposals: an answer that is waited for must not be settled by an entry of another run, or
 * of another member.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestIds } from "../src/loop/proposals.ts";

const MEMBER = 0x1234_5678_9abc_def0n;
const START_MS = 1_767_225_600_000;

function first(ids: RequestIds, count: number): bigint[] {
  return Array.from({ length: count }, () => ids.next());
}

test("two bytes of the member's id, five of the start in milliseconds, then a count", () => {
  const [id] = first(new RequestIds(MEMBER, START_MS), 1);
  assert.equal(id >> 48n, MEMBER & 0xffffn);
  assert.equal((id >> 8n) & 0xff_ffff_ffffn, BigInt(START_MS) & 0xff_ffff_ffffn);
  assert.equal(id & 0xffn, 1n);
});

test("a restarted member repeats none of its ids, even a millisecond later and after many proposals a millisecond", () => {
  const seen = new Set<bigint>();
  // 256 ids a millisecond are enough for more proposals than a member takes.
  for (const startMs of [START_MS, START_MS + 1, START_MS + 2, START_MS + 60_000]) {
    for (const id of first(new RequestIds(MEMBER, startMs), 250)) {
      assert.ok(!seen.has(id), `${id} again, in the run that began at ${startMs}`);
      seen.add(id);
    }
  }
});

test("members share no ids, and none is 0", () => {
  const seen = new Set([0n]);
  for (const member of [1n, 2n, 0xffffn]) {
    for (const id of first(new RequestIds(member, START_MS), 1000)) {
      assert.ok(!seen.has(id), `${id} again, of member ${member}`);
      seen.add(id);
    }
  }
});
