/**
 * Files that others wrote, or earlier versions of this package, are read for ever.
 *
 * - etcd-3.4.23: a member of Debian's etcd 3.4.23 with 60 puts and a snapshot every 20 entries; its
 *   segment is cut down to 8 KiB.
 * - etcd-3.7: written by etcd's own wal package (main branch) with segments of 2 KiB: replaced
 *   entries, an empty and a large one, a snapshot.
 * - quorate-0.1: written by this package.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { raftpb } from "@quorate/proto";
import { validSnapshotMarks, verifyWal, Wal } from "@quorate/wal";
import {
  entries,
  entry,
  installFixture,
  mark,
  newestSnapshot,
  options,
  plain,
  START,
  state,
} from "./support.ts";

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

it("reads what etcd 3.4.23 wrote", async () => {
  const { disk, root } = installFixture("etcd-3.4.23");
  const marks = validSnapshotMarks(disk, `${root}/wal`);
  assert.deepEqual(
    marks.map(({ index, term, confState }) => [index, term, confState]),
    [
      [0, 0, undefined],
      [21, 2, undefined],
      [42, 2, undefined],
      [63, 2, undefined],
    ],
  );
  const voter = 0x9e737febb6b99eeen;
  const { index, term, confState } = newestSnapshot(disk, `${root}/snap`).metadata;
  assert.deepEqual([index, term, confState.voters], [63, 2, [voter]]);

  const opened = Wal.open(disk, `${root}/wal`, START, options(64_000_000));
  assert.equal(opened.droppedTailBytes, 0);
  assert.deepEqual(opened.hardState, state(2, 64, voter));
  assert.deepEqual(
    opened.entries.map((one) => one.index),
    Array.from({ length: 64 }, (_, i) => i + 1),
  );
  assert.equal(opened.entries[0].type, raftpb.EntryType.EntryConfChange);
  assert.equal(raftpb.ConfChange.decode(opened.entries[0].data).nodeId, voter);
  assert.deepEqual([opened.entries[1].term, opened.entries[1].data.length], [2, 0]);
  assert.ok(text(opened.entries[4].data).includes("key1\x12\x07value 1"));
  assert.ok(text(opened.entries[63].data).includes("key60\x12\x08value 60"));
  await opened.wal.close();
  const from = Wal.open(disk, `${root}/wal`, marks[2], options(64_000_000));
  assert.deepEqual(plain(from.entries), plain(opened.entries.slice(42)));
  await from.wal.close();
});

it("reads what etcd 3.7 wrote, over four segments, and goes on in it", async () => {
  const { disk, root } = installFixture("etcd-3.7");
  const dir = `${root}/wal`;
  const voter = 0x1701f7e3861531d4n;
  const marks = validSnapshotMarks(disk, dir);
  assert.deepEqual(marks[1], {
    index: 55,
    term: 1,
    confState: {
      voters: [voter, 2n],
      learners: [3n],
      votersOutgoing: [],
      learnersNext: [],
      autoLeave: false,
    },
  });
  const { data, metadata } = newestSnapshot(disk, `${root}/snap`);
  assert.deepEqual([metadata.index, text(data)], [55, "data"]);
  assert.equal(verifyWal(disk, dir).segments.length, 4);

  const opened = Wal.open(disk, dir, START, options(2048));
  assert.equal(text(opened.metadata), "member 0");
  assert.deepEqual(opened.hardState, state(2, 62, voter));
  assert.deepEqual(
    opened.entries.map(({ index, term, data }) => `${term}/${index} ${data.length}`),
    Array.from({ length: 64 }, (_, i) => {
      const index = i + 1;
      if (index < 60) return `1/${index} 50`;
      return [`2/60 30`, `2/61 700`, `2/62 0`, `2/63 10`, `2/64 10`][index - 60];
    }),
  );
  for (const { index, term, data } of opened.entries)
    assert.ok(data.length === 0 || text(data).startsWith(`${term}/${index} `));
  opened.wal.append(state(3, 64, voter), entries(65, 120, 3));
  await opened.wal.close();
  const again = Wal.open(disk, dir, marks[1], options(2048));
  assert.deepEqual(
    plain(again.entries),
    plain([...opened.entries.slice(55), ...entries(65, 120, 3)]),
  );
});

it("reads what version 0.1 of this package wrote", () => {
  const { disk, root } = installFixture("quorate-0.1");
  const dir = `${root}/wal`;
  const marks = validSnapshotMarks(disk, dir);
  assert.deepEqual(marks, [START, mark(30, 1)]);
  assert.equal(newestSnapshot(disk, `${root}/snap`).metadata.index, 30);
  const summary = verifyWal(disk, dir);
  assert.deepEqual([summary.segments.length, summary.tornBytes, summary.lastIndex], [4, 0, 62]);
  const opened = Wal.open(disk, dir, START, options(2048));
  assert.equal(text(opened.metadata), "member 1");
  assert.deepEqual(opened.hardState, state(2, 60));
  assert.deepEqual(
    plain(opened.entries),
    plain([...entries(1, 60), entry(61, 2, 900), entry(62, 2, 0)]),
  );
});
