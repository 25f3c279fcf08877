/**
 * KV.RangeStream beside etcd 3.7: the same parts, byte for byte, for random requests, and
 * `get --stream` prints the same. With an etcd of another release, the client reads its ranges in
 * pages.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { getStream } from "@quorate/client";
import { connect } from "@quorate/client/node";
import {
  fromUtf8,
  KVService,
  PutRequest,
  RangeRequest,
  RangeStreamResponse,
  TxnRequest,
  toHex,
} from "@quorate/proto";
import { openChannel, TestClient } from "../support/client.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { etcdctlFor } from "../support/etcdctl.ts";
import { etcd, quorate, skipWithoutEtcd } from "../support/executables.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { SeededRandom, seedOf } from "../support/random.ts";

const MAX_REQUEST_BYTES = 8192;
const KEYS = 900;
/** Puts of one transaction, which must not be larger than a request may be. */
const OPS = 10;
const REQUESTS = Number(process.env["QUORATE_STEPS"] ?? 120);
/**
 * Mostly none. A target without an order is left out: etcd sorts each part by itself then, and
 * loses keys.
 */
const SORTS = [
  ...Array.from({ length: 20 }, () => ({})),
  { sortOrder: 1 },
  { sortOrder: 2 },
  { sortOrder: 1, sortTarget: 4 },
  { sortOrder: 9 },
  { sortOrder: 1, sortTarget: 7 },
];
const { RangeStream, Txn, DeleteRange } = KVService.methods;

const keyOf = (i: number): string => `k${String(i).padStart(4, "0")}`;

function isOfRelease(): boolean {
  const { stdout } = spawnSync(etcd!.command[0], ["--version"], { encoding: "utf8" });
  return /etcd Version: 3\.(?:[7-9]|\d\d)\./.test(stdout);
}

const skip = skipWithoutEtcd;
const skipBefore37 =
  skip || (isOfRelease() ? false : "the etcd that is installed is before release 3.7");

/** The parts of a stream and how it ended; ids and the term, in which members differ, are zero. */
function partsOf(address: string, request: RangeRequest): Promise<string[]> {
  const channel = openChannel(address);
  const parts: string[] = [];
  const stream = channel.makeServerStreamRequest(
    RangeStream.path,
    (message: RangeRequest) => Buffer.from(RangeRequest.encode(message)),
    (bytes) => bytes,
    request,
    { deadline: Date.now() + 30_000 },
  );
  stream.on("data", (bytes: Buffer) => {
    const { rangeResponse } = RangeStreamResponse.decode(bytes);
    const again = RangeStreamResponse.encode({ rangeResponse });
    assert.equal(toHex(bytes), toHex(again), "the encoding is the usual one");
    const { kvs, header } = rangeResponse!;
    const same = header && { clusterId: 0n, memberId: 0n, raftTerm: 0, revision: header.revision };
    const part = RangeStreamResponse.encode({ rangeResponse: { ...rangeResponse!, header: same } });
    const hash = createHash("sha256").update(part).digest("hex");
    parts.push(`${kvs.length} keys in ${part.length} bytes ${hash}`);
  });
  stream.on("error", () => {});
  return new Promise((resolve) => {
    stream.on("status", ({ code, details }: { code: number; details: string }) => {
      channel.close();
      resolve([...parts, `${code} ${details}`]);
    });
  });
}

/** The same history in a cluster, whichever it is. */
async function fill(cluster: TestCluster, random: SeededRandom): Promise<void> {
  const client = new TestClient(cluster.members[0].clientAddress);
  try {
    for (let at = 0; at < KEYS; at += OPS) {
      const success = Array.from({ length: OPS }, (_, i) => ({
        request: {
          case: "requestPut" as const,
          value: PutRequest.create({
            key: fromUtf8(keyOf(at + i)),
            value: fromUtf8("v".repeat(random.pick([0, 10, 100, 400, 700]))),
          }),
        },
      }));
      await client.call(Txn, TxnRequest.create({ success }));
    }
    await client.call(DeleteRange, { key: fromUtf8("k01"), rangeEnd: fromUtf8("k013") });
  } finally {
    client.close();
  }
}

suite("beside etcd", { skip }, () => {
  const clusters: TestCluster[] = [];
  before(async () => {
    const flags = ["--max-request-bytes", String(MAX_REQUEST_BYTES)];
    for (const executable of [quorate, etcd!]) {
      const cluster = await startCluster({ executable, size: 1, flags });
      clusters.push(cluster);
      await fill(cluster, new SeededRandom(77));
    }
  });
  after(() => Promise.all(clusters.map((cluster) => cluster.destroy())));

  test("random requests have the same parts", { skip: skipBefore37 }, async (t) => {
    const seed = seedOf(20_261_122);
    t.diagnostic(`seed ${seed} (QUORATE_SEED), ${REQUESTS} requests (QUORATE_STEPS)`);
    const random = new SeededRandom(seed);
    const [ours, theirs] = clusters.map(({ members }) => members[0].clientAddress);
    let most = 0;
    for (let i = 0; i < REQUESTS; i++) {
      const from = random.below(KEYS);
      const request = RangeRequest.create({
        key: fromUtf8(random.pick(["\0", "k", keyOf(from), keyOf(from), ""])),
        rangeEnd: random.pick([
          new Uint8Array(0),
          new Uint8Array(1),
          fromUtf8(keyOf(from + random.below(KEYS))),
        ]),
        limit: random.pick([0, 0, 1, 9, 10, 11, 100, 899]),
        revision: random.oneIn(3) ? random.below(KEYS / OPS + 5) : 0,
        keysOnly: random.oneIn(5),
        countOnly: random.oneIn(9),
        serializable: random.oneIn(2),
        ...random.pick(SORTS),
        minModRevision: random.oneIn(15) ? 3 : 0,
        maxCreateRevision: random.oneIn(15) ? 3 : 0,
      });
      const expected = await partsOf(theirs, request);
      most = Math.max(most, expected.length);
      assert.deepEqual(await partsOf(ours, request), expected, JSON.stringify(request));
    }
    assert.ok(most > 10, `at most ${most} parts`);
  });

  test("get --stream prints what etcdctl prints", { skip: skipBefore37 }, async () => {
    const [ours, theirs] = clusters;
    for (const line of [
      "k000 --prefix",
      "k --prefix -w json --limit 25",
      "k --prefix --keys-only --rev=5",
      "k --prefix --count-only -w fields",
      "k0001 -w protobuf",
      "none -w json",
      "k --prefix --order=DESCEND",
      "k --prefix --sort-by=KEY --order=ASCEND --limit=30",
      "k --prefix --min-mod-rev=2",
      "k --prefix --rev=99",
    ]) {
      const args = ["get", "--stream", ...line.split(" ")];
      const expected = await etcdctlFor(theirs)(args);
      for (const { endpoints } of [ours, theirs]) {
        const { stdout, stderr, code } = await runQuoratectl(endpoints, args);
        const plain = (text: string) =>
          text.replace(
            /("?(?:cluster_id|member_id|raft_term|ClusterID|MemberID|RaftTerm)"? ?:) ?\d+/g,
            "$1",
          );
        assert.equal(code, expected.code, line);
        // etcdctl logs the variable of older releases.
        assert.equal(stderr, expected.stderr.replace(/^\{"level":.*\n/gm, ""), line);
        if (!line.includes("protobuf") || endpoints === theirs.endpoints)
          assert.equal(plain(stdout), plain(expected.stdout), line);
      }
    }
  });

  test("the client reads all of a range from either, in parts", async () => {
    const read = async ({ endpoints }: TestCluster): Promise<string[]> => {
      const client = connect({ endpoints });
      try {
        const keys: string[] = [];
        for await (const { kvs, end } of getStream(client, "k", { prefix: true })) {
          for (const { key, value } of kvs) keys.push(`${toHex(key)} ${value.length}`);
          if (end !== undefined) keys.push(`${end.count} ${end.more} ${end.header.revision}`);
        }
        return keys;
      } finally {
        client.close();
      }
    };
    const [ours, theirs] = await Promise.all(clusters.map(read));
    assert.equal(ours.length, KEYS - 30 + 1);
    assert.deepEqual(theirs, ours);
  });
});
