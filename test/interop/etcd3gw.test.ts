/** The client "etcd3gw" for Python (PyPI), which speaks the JSON gateway over HTTP/1.1. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withCluster } from "../support/cluster.ts";
import { PYTHON, skipWithoutEtcd3gw } from "./patroni/installed.ts";
import { Program } from "./python/program.ts";

const PARTS = ["cluster", "keys", "transactions", "leases", "locks", "watches"];

test("etcd3gw: keys, transactions, leases, locks and watches", {
  skip: skipWithoutEtcd3gw(),
}, async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    const program = new Program(PYTHON, "gateway.py", [cluster.members[1].clientAddress]);
    try {
      await program.end();
      assert.deepEqual(program.lines, PARTS);
    } finally {
      program.kill();
    }
  });
});
