/**
 * Streams of a large range: the member needs no more memory than parts of it, whether the client
 * reads fast or not at all. QUORATE_STREAM_MIB is the size of the range (`./dev soak stream` takes
 * 1 GiB).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { rangeParts } from "@quorate/client";
import { connect } from "@quorate/client/node";
import { fromUtf8, KVService, RangeRequest, RangeStreamResponse } from "@quorate/proto";
import { anonymousMib } from "../fuzz/resident.ts";
import { openChannel } from "../support/client.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { until } from "../support/until.ts";

const TOTAL_MIB = Number(process.env["QUORATE_STREAM_MIB"] ?? 96);
const VALUE_BYTES = 64 << 10;
const KEYS = (TOTAL_MIB << 20) / VALUE_BYTES;
/** Threads besides the member's, each with a heap that holds the garbage of one more way. */
const FRONT_ENDS = Number(process.env["ETCD_FRONTEND_THREADS"] ?? 0);
/** More than the member's memory at rest. */
const MAX_MORE_MIB = 64 + 16 * FRONT_ENDS;
const PARALLEL_PUTS = 8;
/** Streams of which nothing is read. */
const STALLED = 8;
const ALL = RangeRequest.create({ key: fromUtf8("k"), rangeEnd: fromUtf8("l") });

async function fill({ endpoints }: TestCluster): Promise<void> {
  const client = connect({ endpoints });
  try {
    for (let at = 0; at < KEYS; at += PARALLEL_PUTS) {
      const puts = Array.from({ length: PARALLEL_PUTS }, (_, i) => {
        const value = new Uint8Array(VALUE_BYTES);
        // Not to be compressed: the records are to be as large on the disk.
        let state = at + i + 1;
        for (let place = 0; place < VALUE_BYTES; place += 2) {
          state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
          value[place] = state >>> 16;
        }
        return client.put(`k${String(at + i).padStart(8, "0")}`, value);
      });
      await Promise.all(puts);
    }
  } finally {
    client.close();
  }
}

test(`${TOTAL_MIB} MiB are streamed within ${MAX_MORE_MIB} MiB of the memory at rest`, async (t) => {
  const flags = ["--quota-backend-bytes", String(4 << 30), "--snapshot-count", "1000"];
  await withCluster({ size: 1, flags }, async (cluster) => {
    await fill(cluster);
    const [member] = cluster.members;
    // A member that has just started is at rest.
    await member.terminate();
    member.start();
    await member.waitReady();
    const atRestMib = anonymousMib(member.pid!);
    let mostMib = 0;
    const look = setInterval(() => {
      mostMib = Math.max(mostMib, anonymousMib(member.pid!));
    }, 20);
    const client = connect({ endpoints: cluster.endpoints });
    const channel = openChannel(member.clientAddress);
    try {
      let keys = 0;
      let bytes = 0;
      for await (const { kvs, header, count } of rangeParts(client, ALL)) {
        keys += kvs.length;
        for (const { length } of kvs) bytes += length;
        if (header !== undefined) assert.equal(count, KEYS);
      }
      assert.equal(keys, KEYS);
      assert.ok(bytes >= TOTAL_MIB << 20);
      t.diagnostic(`at rest ${atRestMib} MiB, at most ${mostMib} MiB`);
      assert.ok(mostMib - atRestMib <= MAX_MORE_MIB, `${atRestMib} MiB became ${mostMib} MiB`);

      // Readers that take nothing: each holds its window, a budget and a part.
      let begun = 0;
      const streams = Array.from({ length: STALLED }, () =>
        channel
          .makeServerStreamRequest(
            KVService.methods.RangeStream.path,
            (request: RangeRequest) => Buffer.from(RangeRequest.encode(request)),
            (part) => RangeStreamResponse.decode(part),
            ALL,
          )
          .on("error", () => {})
          .on("metadata", () => begun++),
      );
      await until("all streams have begun", () => begun === STALLED, 20);
      await client.put("after", "1");
      t.diagnostic(`with ${STALLED} that read nothing at most ${mostMib} MiB`);
      assert.ok(mostMib - atRestMib <= MAX_MORE_MIB, `${atRestMib} MiB became ${mostMib} MiB`);
      for (const stream of streams) stream.cancel();
    } finally {
      clearInterval(look);
      client.close();
      channel.close();
    }
  });
});
