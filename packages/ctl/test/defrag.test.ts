/** Rewriting a store range by range: the ranges cover the store without gaps. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Keyspace, KeyspaceRange, KeyspaceRecord } from "@quorate/host";
import { rewriteStore } from "../src/offline/defrag.ts";

/** A keyspace with records of 10 bytes, which records the compacted ranges. */
function keyspaceOf(count: number): { keyspace: Keyspace; compacted: KeyspaceRange[] } {
  const records: KeyspaceRecord[] = Array.from({ length: count }, (_, i) => [
    Uint8Array.of(i),
    new Uint8Array(9),
  ]);
  const compacted: KeyspaceRange[] = [];
  const keyspace = {
    async *scan({ from }: KeyspaceRange) {
      const first = from?.[0] ?? 0;
      for (let at = first; at < count; at += 3) yield records.slice(at, at + 3);
    },
    compact: async (range: KeyspaceRange) => void compacted.push(range),
  };
  return { keyspace: keyspace as unknown as Keyspace, compacted };
}

test("an empty store, one range, several ranges", async () => {
  const keyOf = (key: Uint8Array | undefined): number | undefined => key?.[0];
  for (const [count, expected] of [
    [0, [[undefined, undefined]]],
    [4, [[undefined, undefined]]],
    [
      10,
      [
        [undefined, 4],
        [4, 8],
        [8, undefined],
      ],
    ],
  ] as [number, [number | undefined, number | undefined][]][]) {
    const { keyspace, compacted } = keyspaceOf(count);
    const reported: number[] = [];
    await rewriteStore(keyspace, (bytes) => reported.push(bytes), 40);
    assert.deepEqual(
      compacted.map(({ from, to }) => [keyOf(from), keyOf(to)]),
      expected,
    );
    assert.equal(reported.at(-1), count * 10);
    assert.deepEqual(
      reported,
      [...reported].sort((a, b) => a - b),
    );
  }
});
