/**
 * The client "etcd3" for Python (Debian: python3-etcd3), which stands on gRPC's C core: its calls,
 * and a watch that outlives members.
 * @slow
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fromUtf8, KVService } from "@quorate/proto";
import { TestClient } from "../support/client.ts";
import { withCluster } from "../support/cluster.ts";
import { until } from "../support/until.ts";
import { Program, PYTHON, skipWithoutPython } from "./python/program.ts";

const PARTS = ["keys", "watch", "lease", "lock", "lock and election services"];

describe("the client etcd3 for Python", { skip: skipWithoutPython() }, () => {
  test("keys, watches, leases, locks and elections", async () => {
    await withCluster({ size: 3 }, async (cluster) => {
      const program = new Program(PYTHON, "calls.py", [cluster.members[1].clientAddress]);
      try {
        await program.end();
        assert.deepEqual(program.lines, PARTS);
      } finally {
        program.kill();
      }
    });
  });

  test("a watch goes on at other members when its own are killed, and sees every change once", async () => {
    await withCluster({ size: 3 }, async (cluster) => {
      const program = new Program(PYTHON, "follow.py", [
        "f/",
        ...cluster.members.map((member) => member.clientAddress),
      ]);
      const written: string[] = [];
      /** Writes through a member; the last value may be a given one. */
      const write = async (member: number, count: number, last?: string): Promise<void> => {
        const kv = new TestClient(cluster.members[member].clientAddress);
        try {
          for (let i = 1; i <= count; i++) {
            const value = i === count && last !== undefined ? last : String(written.length);
            await kv.call(
              KVService.methods.Put,
              { key: fromUtf8(`f/${i % 7}`), value: fromUtf8(value) },
              30_000,
            );
            written.push(value);
          }
        } finally {
          kv.close();
        }
      };
      try {
        await program.printed(1);
        // It watches at m0, then m1, then m2, then m0 again: each is killed while it is watched,
        // and comes back.
        for (const [at, member] of cluster.members.entries()) {
          await write(at, 20);
          await program.printed(1 + written.length);
          await member.kill();
          await writable(cluster.members[(at + 1) % 3].clientAddress);
          await write((at + 1) % 3, 20);
          member.start();
          await member.waitReady();
        }
        await write(1, 20, "end");
        await program.end();
        assert.deepEqual(program.lines, ["watching", ...written]);
      } finally {
        program.kill();
      }
    });
  });
});

/**
 * Waits until a member takes writes, which may need an election; it writes to a key without
 * watches.
 */
async function writable(address: string): Promise<void> {
  const kv = new TestClient(address);
  try {
    await until("the member takes writes", () =>
      kv.call(KVService.methods.Put, { key: fromUtf8("probe") }, 2000).then(
        () => true,
        () => false,
      ),
    );
  } finally {
    kv.close();
  }
}
