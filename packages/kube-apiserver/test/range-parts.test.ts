/**
 * Lists of the store are streams of its cluster, and pages where the cluster has no streams: with
 * our member, and with etcd where it is there.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Client } from "@quorate/client";
import { connect } from "@quorate/client/node";
import { Canceller, type ClusterPart } from "@quorate/kube-storage";
import { fromUtf8, KVService, toUtf8 } from "@quorate/proto";
import { startCluster, type TestCluster } from "../../../test/support/cluster.ts";
import { type Executable, etcdNewest, memberUnderTest } from "../../../test/support/executables.ts";
import { LibraryCluster } from "../node/cluster.ts";

const KEYS = 1500;
const START = fromUtf8("/k/");
const ALL = { end: fromUtf8("/k0"), revision: 0, limit: 0 };
const keyOf = (i: number): string => `/k/${String(i).padStart(5, "0")}`;

/** Puts all keys, in transactions that etcd takes. */
async function fill(client: Client): Promise<void> {
  const value = "v".repeat(2000);
  for (let i = 0; i < KEYS; i += 100) {
    const puts = Array.from({ length: 100 }, (_, at) => client.put(keyOf(i + at), value));
    await Promise.all(puts);
  }
}

/** The parts, and how often the client was asked for what. */
async function read(
  client: Client,
  cluster: LibraryCluster,
  options = ALL,
  each: (part: ClusterPart) => unknown = () => undefined,
) {
  const asked = { streams: 0, ranges: 0 };
  const { stream, call } = client;
  client.stream = ((...args: Parameters<typeof stream>) => {
    if (args[0].path === KVService.methods.RangeStream.path) asked.streams++;
    return stream.apply(client, args);
  }) as typeof stream;
  client.call = ((...args: Parameters<typeof call>) => {
    if (args[0].path === KVService.methods.Range.path) asked.ranges++;
    return call.apply(client, args);
  }) as typeof call;
  const parts: ClusterPart[] = [];
  try {
    for await (const part of cluster.rangeParts(START, options, undefined)) {
      parts.push(part);
      await each(part);
    }
  } finally {
    client.stream = stream;
    client.call = call;
  }
  const keys = parts.flatMap(({ records }) => records.map(({ key }) => toUtf8(key)));
  return { asked, parts, keys, ends: parts.map(({ end }) => end) };
}

const wanted = Array.from({ length: KEYS }, (_, i) => keyOf(i));

function streamsOf(executable: Executable): void {
  describe(`streams of ${executable.name}`, () => {
    let member: TestCluster;
    let client: Client;
    before(async () => {
      member = await startCluster({ executable, size: 1 });
      client = connect({ endpoints: member.endpoints });
      await fill(client);
    });
    after(async () => {
      client.close();
      await member.destroy();
    });

    it("has parts of one revision, the last of which has the rest", async () => {
      let written = 0;
      const { asked, parts, keys, ends } = await read(
        client,
        new LibraryCluster(client),
        ALL,
        async () => {
          if (written++ === 0) await client.put(`${keyOf(KEYS)}x`, "later");
        },
      );
      assert.deepEqual(asked, { streams: 1, ranges: 0 });
      assert.deepEqual(keys, wanted);
      assert.ok(parts.length > 3);
      assert.deepEqual(ends.slice(0, -1), Array(parts.length - 1).fill(undefined));
      const end = ends.at(-1);
      const latest = (await client.get("/k/")).header.revision;
      assert.deepEqual(end, { count: KEYS, revision: latest - 1 });
      const pinned = { ...ALL, revision: latest - 1, limit: 700 };
      const some = await read(client, new LibraryCluster(client), pinned);
      assert.deepEqual(some.keys, wanted.slice(0, 700));
      assert.deepEqual(some.ends.at(-1), { count: KEYS, revision: latest });
      await client.delete(`${keyOf(KEYS)}x`);
    });

    it("ends with its caller, and says what is gone", async () => {
      const cluster = new LibraryCluster(client);
      const canceller = new Canceller();
      const reason = new RangeError("gone");
      const left = async () => {
        for await (const _ of cluster.rangeParts(START, ALL, canceller)) canceller.abort(reason);
      };
      await assert.rejects(left);
      const { header } = await client.put("/other", "x");
      await client.compact(header.revision);
      const old = { ...ALL, revision: header.revision - 1 };
      await assert.rejects(read(client, cluster, old), { code: "Compacted" });
      const future = { ...ALL, revision: header.revision + 100 };
      await assert.rejects(read(client, cluster, future), { code: "FutureRevision" });
    });

    it("is not asked for streams where they are off", async () => {
      const { asked, keys, ends } = await read(client, new LibraryCluster(client, false));
      assert.equal(asked.streams, 0);
      assert.ok(asked.ranges > 1);
      assert.deepEqual(keys, wanted);
      assert.equal(ends.at(-1)?.count, KEYS);
    });

    it("is read in pages where there are no streams, and asked again later", async (t) => {
      const other = connect({ endpoints: member.endpoints });
      t.after(() => other.close());
      const { stream } = other;
      // The member responds as one of an earlier version.
      other.stream = ((method, ...rest) =>
        stream.call(
          other,
          { ...method, path: "/etcdserverpb.KV/Absent" },
          ...rest,
        )) as typeof stream;
      let nowMs = 0;
      const cluster = new LibraryCluster(other, true, { monotonicMs: () => nowMs });
      const streams: number[] = [];
      for (const minutes of [0, 1, 9, 11, 12]) {
        nowMs = minutes * 60_000;
        const { asked, keys } = await read(other, cluster);
        assert.deepEqual(keys, wanted);
        streams.push(asked.streams);
      }
      assert.deepEqual(streams, [1, 0, 0, 1, 0]);
    });
  });
}

streamsOf(memberUnderTest);
if (etcdNewest !== undefined) streamsOf(etcdNewest);
else
  it("streams of etcd", {
    skip: "QUORATE_TEST_ETCD_NEWEST does not have the path of an etcd 3.7",
  });
