/**
 * Members send the spans of sampled calls to a collector, and without the flag nothing of tracing
 * is even loaded.
 * @slow
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import {
  Compare_CompareTarget,
  fromUtf8,
  KVService,
  LeaseService,
  type MethodDescriptor,
  PutRequest,
  RangeRequest,
  TxnRequest,
  WatchCreateRequest,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import { openChannel } from "../support/client.ts";
import { withCluster } from "../support/cluster.ts";
import { quorate } from "../support/executables.ts";
import { get } from "../support/http.ts";
import { type CollectedSpan, OtlpCollector } from "../support/otlp-collector.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { until } from "../support/until.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";
const UNSAMPLED = "11111111111111111111111111111111";

/** Calls a unary method as a caller with this trace; resolves with the status code. */
function call(
  channel: grpc.Client,
  method: MethodDescriptor,
  request: Uint8Array,
  traceparent?: string,
): Promise<number> {
  const metadata = new grpc.Metadata();
  if (traceparent !== undefined) metadata.set("traceparent", traceparent);
  return new Promise((resolve) => {
    channel.makeUnaryRequest(
      method.path,
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => bytes,
      request,
      metadata,
      { deadline: Date.now() + 30_000 },
      (error) => resolve(error?.code ?? 0),
    );
  });
}

test("spans of calls arrive under their callers' traces, with what etcd's say of the request", async (t) => {
  const collector = new OtlpCollector();
  const address = await collector.listen();
  t.after(() => collector.close());
  const flags = [
    "--enable-distributed-tracing",
    `--distributed-tracing-address=${address}`,
    "--distributed-tracing-service-name=store",
    "--distributed-tracing-instance-id=m0",
  ];
  await withCluster({ size: 1, flags }, async (cluster) => {
    const [member] = cluster.members;
    const channel = openChannel(member.clientAddress);
    const sampled = `00-${TRACE}-${PARENT}-01`;
    const key = fromUtf8("k");
    assert.equal(
      await call(
        channel,
        KVService.methods.Put,
        PutRequest.encode({ key, value: fromUtf8("v") }),
        sampled,
      ),
      0,
    );
    assert.equal(
      await call(
        channel,
        KVService.methods.Range,
        RangeRequest.encode({ key, keysOnly: true }),
        sampled,
      ),
      0,
    );
    const txn = TxnRequest.encode({
      compare: [
        {
          target: Compare_CompareTarget.MOD,
          result: 0,
          key,
          targetUnion: { case: "modRevision", value: 1 },
          rangeEnd: new Uint8Array(),
        },
      ],
      success: [
        {
          request: {
            case: "requestPut",
            value: PutRequest.create({ key: fromUtf8("op"), lease: 1234n }),
          },
        },
      ],
    });
    assert.equal(await call(channel, KVService.methods.Txn, txn, sampled), 0);
    assert.equal(
      await call(channel, KVService.methods.Range, RangeRequest.encode({}), sampled),
      grpc.status.INVALID_ARGUMENT,
    );
    assert.equal(
      await call(channel, LeaseService.methods.LeaseRevoke, Uint8Array.of(8, 77), sampled),
      grpc.status.NOT_FOUND,
    );
    // Callers who do not sample, and those who say nothing: the rate is 0.
    assert.equal(
      await call(
        channel,
        KVService.methods.Put,
        PutRequest.encode({ key }),
        `00-${UNSAMPLED}-${PARENT}-00`,
      ),
      0,
    );
    assert.equal(await call(channel, KVService.methods.Put, PutRequest.encode({ key })), 0);

    const metadata = new grpc.Metadata();
    metadata.set("traceparent", sampled);
    const watch = channel.makeBidiStreamRequest(
      WatchService.methods.Watch.path,
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => bytes,
      metadata,
    );
    watch.on("error", () => {});
    const create = WatchRequest.create({
      requestUnion: { case: "createRequest", value: WatchCreateRequest.create({ key }) },
    });
    watch.write(WatchRequest.encode(create));
    await new Promise((resolve) => watch.once("data", resolve));
    watch.cancel();

    const named = (name: string): CollectedSpan[] =>
      collector.spans.filter((span) => span.name === name);
    const expected = [
      "etcdserverpb.KV/Put",
      "etcdserverpb.KV/Range",
      "etcdserverpb.KV/Range",
      "etcdserverpb.KV/Txn",
      "etcdserverpb.Lease/LeaseRevoke",
      "etcdserverpb.Watch/Watch",
      "lease_revoke",
      "put",
      "range",
      "range",
      "txn",
      "watch",
    ];
    await until(
      "all spans are there",
      () =>
        collector.spans.length >= expected.length && named("etcdserverpb.Watch/Watch").length > 0,
      100,
    );
    assert.deepEqual(collector.spans.map(({ name }) => name).sort(), expected);
    for (const span of collector.spans) {
      assert.equal(span.traceId, TRACE);
      assert.equal(span.service, "store");
      assert.ok(
        span.durationNs >= 0n && span.durationNs < 30_000_000_000n,
        `${span.durationNs} ns`,
      );
    }
    const [put] = named("put");
    const [rpc] = named("etcdserverpb.KV/Put");
    assert.deepEqual([rpc.parentSpanId, rpc.kind, rpc.status], [PARENT, 2, undefined]);
    assert.deepEqual(rpc.attributes, {
      "rpc.method": "etcdserverpb.KV/Put",
      "rpc.system.name": "grpc",
      "rpc.response.status_code": "OK",
    });
    assert.deepEqual([put.parentSpanId, put.kind, put.attributes], [rpc.spanId, 1, { key: "k" }]);
    assert.deepEqual(put.events, ["Send raft proposal", "Receive raft result"]);
    assert.deepEqual(named("range")[0].attributes, {
      range_begin: "k",
      range_end: "",
      rev: "0",
      limit: "0",
      count_only: false,
      keys_only: true,
    });
    assert.deepEqual(named("txn")[0].attributes, {
      compare_first_key: "k",
      success_first_key: "op",
      success_first_type: "put",
      success_first_lease: "1234",
      compare_len: "1",
      success_len: "1",
      failure_len: "0",
      read_only: false,
    });
    // Refused for the caller's fault: a status code, and no failure of the server's.
    const refused = named("etcdserverpb.KV/Range").find(
      ({ attributes }) => attributes["rpc.response.status_code"] !== "OK",
    )!;
    assert.deepEqual(
      [refused.attributes["rpc.response.status_code"], refused.status],
      ["INVALID_ARGUMENT", undefined],
    );
    const [stream] = named("etcdserverpb.Watch/Watch");
    assert.equal(stream.attributes["rpc.response.status_code"], "CANCELLED");
    assert.deepEqual(
      [named("watch")[0].parentSpanId, named("watch")[0].attributes["key"]],
      [stream.spanId, "k"],
    );

    // The collector has them before the member knows that it has.
    const exported = new RegExp(
      `^quorate_tracing_spans_exported_total ${collector.spans.length}$`,
      "m",
    );
    await until("the member has counted them", async () =>
      exported.test((await get(cluster, member, "/metrics")).body),
    );
    assert.match(
      (await get(cluster, member, "/metrics")).body,
      /^quorate_tracing_spans_dropped_total 0$/m,
    );
    channel.close();

    // What has not left yet leaves when the member stops.
    const last = openChannel(member.clientAddress);
    await call(last, KVService.methods.Put, PutRequest.encode({ key: fromUtf8("last") }), sampled);
    last.close();
    await member.terminate();
    await until("the last spans are there", () =>
      named("put").some(({ attributes }) => attributes["key"] === "last"),
    );
  });
});

test("a collector that is not there does not matter, and without the flag nothing of tracing is loaded", async (t) => {
  const dir = scratchDirectory("quorate-tracing-", t);
  const loaded = join(dir, "loaded");
  writeFileSync(
    join(dir, "hook.mjs"),
    `import { appendFileSync } from "node:fs";
     import { registerHooks } from "node:module";
     registerHooks({ load(url, context, next) { appendFileSync(${JSON.stringify(loaded)}, url + "\\n"); return next(url, context); } });`,
  );
  const load = async (flags: string[]): Promise<string> => {
    writeFileSync(loaded, "");
    const env = { NODE_OPTIONS: `--import=${join(dir, "hook.mjs")}` };
    // The sources, whose modules have names.
    await withCluster({ executable: quorate, size: 1, flags, env }, async (cluster) => {
      const channel = openChannel(cluster.members[0].clientAddress);
      for (let i = 0; i < 3; i++) {
        assert.equal(
          await call(channel, KVService.methods.Put, PutRequest.encode({ key: fromUtf8(`k${i}`) })),
          0,
        );
      }
      channel.close();
    });
    return readFileSync(loaded, "utf8");
  };
  const without = await load([]);
  assert.match(without, /server\/node\/serve\.ts/);
  assert.doesNotMatch(without, /tracing/);
  // No process listens on the discard port.
  const rate = "--distributed-tracing-sampling-rate=1000000";
  assert.match(
    await load(["--enable-distributed-tracing", "--distributed-tracing-address=127.0.0.1:9", rate]),
    /server\/node\/tracing\/index\.ts/,
  );
});
