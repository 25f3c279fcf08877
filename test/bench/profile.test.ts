/**
 * From V8's profile to the table and the flame picture; and a real one of a moment's load.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  allocationFrames,
  type CpuProfile,
  frames,
  functionTimes,
} from "../../bench/cpu-profile.ts";
import { flameHtml } from "../../bench/flame.ts";
import { findRow, profileRow, topTable } from "../../bench/profile.ts";

const frame = (functionName: string, url = "", lineNumber = -1) => ({
  functionName,
  url,
  lineNumber,
});

test("samples become a tree of what ran in a time, idle time apart", () => {
  const profile: CpuProfile = {
    nodes: [
      { id: 1, callFrame: frame("(root)"), children: [2, 3] },
      { id: 2, callFrame: frame("outer", "file:///home/x/a.ts", 9), children: [4] },
      { id: 3, callFrame: frame("(idle)") },
      { id: 4, callFrame: frame("inner", "file:///home/x/b.ts", 0), children: [5] },
      { id: 5, callFrame: frame("outer", "file:///home/x/a.ts", 9) },
    ],
    startTime: 1_000_000,
    // At 1,001, 1,002, 1,004, 1,007 and 1,009 ms.
    samples: [2, 4, 5, 3, 4],
    timeDeltas: [1000, 1000, 2000, 3000, 2000],
  };
  const { tree, idleMs } = frames(profile, 1_001_500, 1_008_000, "/home/x/");
  assert.equal(idleMs, 1);
  assert.deepEqual(tree, {
    name: "(root)",
    selfMs: 0,
    totalMs: 5.5,
    children: [
      {
        name: "outer a.ts:10",
        selfMs: 0.5,
        totalMs: 5.5,
        children: [
          {
            name: "inner b.ts:1",
            selfMs: 2,
            totalMs: 5,
            children: [{ name: "outer a.ts:10", selfMs: 3, totalMs: 3, children: [] }],
          },
        ],
      },
    ],
  });
  assert.deepEqual(functionTimes(tree).slice(0, 2), [
    { name: "outer a.ts:10", selfMs: 3.5, totalMs: 5.5 },
    { name: "inner b.ts:1", selfMs: 2, totalMs: 5 },
  ]);
});

test("samples of allocations become a tree of kilobytes", () => {
  const leaf = { callFrame: frame("inner", "file:///home/x/b.ts", 0), selfSize: 500, children: [] };
  const outer = frame("outer", "file:///home/x/a.ts", 9);
  const tree = allocationFrames(
    {
      head: {
        callFrame: frame("(root)"),
        selfSize: 0,
        children: [leaf, { callFrame: outer, selfSize: 2000, children: [leaf] }],
      },
    },
    "/home/x/",
  );
  assert.deepEqual(functionTimes(tree), [
    { name: "outer a.ts:10", selfMs: 2, totalMs: 2.5 },
    { name: "inner b.ts:1", selfMs: 1, totalMs: 1 },
    { name: "(root)", selfMs: 0, totalMs: 3 },
  ]);
});

test("a row is found by a part of its name that only it has", () => {
  assert.equal(findRow("txn").name, "txn compare and put, 1000 clients");
  assert.throws(() => findRow("put random"), /several rows.*\n.*put random, 1 client\n/);
  assert.throws(() => findRow("no such"), /no row is called "no such":\n {2}put random/);
});

const READS = {
  row: findRow("get serializable"),
  size: 1,
  tls: false,
  member: "leader",
} as const;

test("a profile of allocations names the functions that allocated for the load", async () => {
  const profiled = await profileRow({ ...READS, seconds: 1, allocations: "all" });
  const eachBytes = (1000 * profiled.tree.totalMs) / profiled.answered;
  assert.ok(eachBytes > 100 && eachBytes < 100_000, `${eachBytes} bytes a call`);
  assert.match(topTable(profiled, 500, "B"), / packages\/services\/src\/v3\/kv\.ts:\d+/);
});

test("a profile of a running member names the functions that served the load", async () => {
  const profiled = await profileRow({ ...READS, seconds: 2 });
  assert.ok(profiled.answered > 0 && profiled.tree.totalMs > 0 && profiled.elapsedMs > 200);
  // Of the sources: a profile of a bundle would name files that nobody knows.
  assert.match(topTable(profiled, 500), / packages\/store\/src\/requests\/range\.ts:\d+/);
  const html = flameHtml("a <b>", profiled.tree);
  assert.match(html, /<title>a &lt;b&gt;<\/title>/);
  const data = /const tree = (.*);\n/.exec(html)![1];
  assert.deepEqual([JSON.parse(data)[0], data.includes("<")], ["(root)", false]);
});
