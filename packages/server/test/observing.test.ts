/** What a member reports of itself: metrics and health. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpHandler, HttpResponse } from "@quorate/host";
import { type LogFields, silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { ManualClock } from "@quorate/host/testing";
import type { MetricSources } from "@quorate/member/testing";
import { memberMetrics } from "@quorate/member/testing";
import { exponentialBuckets, Family, Gauge, Histogram, MetricRegistry } from "@quorate/metrics";
import { processMetrics, prometheusExposition } from "@quorate/metrics/node";
import { GrpcCode, services } from "@quorate/proto";
import { rpcObserver, SlowCalls } from "@quorate/services";
import { transportObserver } from "../node/peer-metrics.ts";
import { httpRouter, versionEndpoint } from "../src/http/endpoints.ts";
import { checkEndpoints, type HealthSource, healthEndpoint } from "../src/http/health.ts";

const sources = new Proxy({} as MetricSources, { get: () => () => 0 });

test("a histogram counts each value in the first bucket that holds it", async () => {
  const registry = new MetricRegistry();
  const histogram = registry.histogram("h", "a histogram", exponentialBuckets(1, 2, 3));
  for (const value of [0.5, 1, 1.5, 4, 100]) histogram.observe(value);
  assert.deepEqual(histogram.counts, [2, 1, 1, 1]);
  const text = await prometheusExposition(registry).text();
  for (const line of [
    'h_bucket{le="1"} 2',
    'h_bucket{le="2"} 3',
    'h_bucket{le="4"} 4',
    'h_bucket{le="+Inf"} 5',
    "h_sum 107",
    "h_count 5",
  ]) {
    assert.ok(text.includes(`${line}\n`), line);
  }
});

test("a family holds its bound of series, and counts the rest together", () => {
  const family = new Family(["who"], () => new Gauge(), 2);
  for (const who of ["a", "b", "c", "d"]) family.with(who).value++;
  assert.deepEqual(
    [...family.series.values()].map((series) => [series.labels["who"], series.metric.value]),
    [
      ["a", 1],
      ["b", 1],
      ["other", 2],
    ],
  );
});

test("a name is declared once", () => {
  const registry = new MetricRegistry();
  registry.counter("c", "a counter");
  assert.throws(() => registry.gauge("c", "again"), /metric c is declared twice/);
});

test("the exposition has etcd's names with their types", async () => {
  const metrics = memberMetrics(sources, { extensive: false });
  metrics.peerSentBytes.with("a1").add(7);
  metrics.walFsyncDuration.observe(0.0015);
  const { text, contentType } = prometheusExposition(metrics.registry);
  const exposition = await text();
  assert.match(contentType, /^text\/plain; version=0\.0\.4/);
  for (const pattern of [
    /^# TYPE etcd_server_has_leader gauge$/m,
    /^# TYPE etcd_server_leader_changes_seen_total counter$/m,
    /^# TYPE etcd_server_proposals_failed_total counter$/m,
    /^# TYPE etcd_disk_wal_fsync_duration_seconds histogram$/m,
    /^# TYPE etcd_disk_backend_commit_duration_seconds histogram$/m,
    /^etcd_network_peer_sent_bytes_total\{To="a1"\} 7$/m,
    /^etcd_disk_wal_fsync_duration_seconds_bucket\{le="0.002"\} 1$/m,
  ]) {
    assert.match(exposition, pattern);
  }
  assert.doesNotMatch(exposition, /grpc_server_handling_seconds/);
  const extensive = memberMetrics(sources, { extensive: true });
  assert.ok(extensive.grpcHandling instanceof Family);
  assert.ok(extensive.grpcHandling.with("unary", "s", "m") instanceof Histogram);
});

interface Fake {
  alarms: string[];
  leader: boolean;
  learner: boolean;
  failing: "none" | "linearizable" | "all";
}

function health(fake: Partial<Fake>) {
  const state: Fake = { alarms: [], leader: true, learner: false, failing: "none", ...fake };
  const source: HealthSource = {
    alarms: () => state.alarms,
    hasLeader: () => state.leader,
    isLearner: () => state.learner,
    read: async ({ serializable }) => {
      if (state.failing === "all" || (state.failing === "linearizable" && !serializable))
        throw new Error("etcdserver: request timed out");
    },
  };
  const metrics = memberMetrics(sources, { extensive: false });
  const handler: HttpHandler = httpRouter(
    new Map([
      ["/health", healthEndpoint(source, metrics, silentLogger)],
      ...checkEndpoints(source, metrics, silentLogger),
    ]),
  );
  const ask = async (path: string, query = "", method = "GET"): Promise<HttpResponse> =>
    handler({
      method,
      path,
      query,
      headers: new Map(),
      body: new Uint8Array(),
      peerAddress: "",
      peerCommonName: undefined,
    });
  return { ask, metrics };
}

test("/health: well, and every way of not being well", async () => {
  const cases: [Partial<Fake>, string, number, string][] = [
    [{}, "", 200, '{"health":"true","reason":""}'],
    [{ alarms: ["NOSPACE"] }, "", 503, '{"health":"false","reason":"ALARM NOSPACE"}\n'],
    [{ alarms: ["NOSPACE"] }, "exclude=NOSPACE", 200, '{"health":"true","reason":""}'],
    [
      { alarms: ["CORRUPT", "NOSPACE"] },
      "exclude=NOSPACE",
      503,
      '{"health":"false","reason":"ALARM CORRUPT"}\n',
    ],
    [{ leader: false }, "", 503, '{"health":"false","reason":"RAFT NO LEADER"}\n'],
    [
      { leader: false, failing: "linearizable" },
      "serializable=true",
      200,
      '{"health":"true","reason":""}',
    ],
    [
      { failing: "linearizable" },
      "",
      503,
      '{"health":"false","reason":"RANGE ERROR:etcdserver: request timed out"}\n',
    ],
  ];
  for (const [fake, query, status, body] of cases) {
    const { ask, metrics } = health(fake);
    const answer = await ask("/health", query);
    assert.deepEqual([answer.status, answer.body], [status, body], JSON.stringify([fake, query]));
    assert.equal(metrics.healthSuccess.value, status === 200 ? 1 : 0);
    assert.equal(metrics.healthFailures.value, status === 200 ? 0 : 1);
  }
  assert.equal((await health({}).ask("/health", "", "POST")).status, 405);
});

test("/livez and /readyz: as a whole, verbose, one check alone, one left out", async () => {
  const sick = health({ failing: "linearizable", learner: true });
  assert.deepEqual(
    [(await sick.ask("/livez")).status, (await sick.ask("/livez")).body],
    [200, "ok\n"],
  );
  const ready = await sick.ask("/readyz");
  assert.equal(ready.status, 503);
  assert.match(
    String(ready.body),
    /\[-\]linearizable_read failed: range error: etcdserver: request timed out\n/,
  );
  assert.match(String(ready.body), /\[\+\]serializable_read ok\n/);
  assert.match(String(ready.body), /\[-\]non_learner failed/);
  assert.equal(
    (await sick.ask("/readyz", "exclude=linearizable_read&exclude=non_learner")).status,
    200,
  );
  assert.equal(
    (await sick.ask("/readyz/serializable_read", "verbose")).body,
    "[+]serializable_read ok\nok\n",
  );
  assert.equal((await sick.ask("/readyz/no_such")).status, 404);
  assert.equal(sick.metrics.healthchecks.with("readyz", "linearizable_read", "error").value, 1);
});

test("/version returns the server's and the cluster's version", async () => {
  const answer = await versionEndpoint({
    serverVersion: "3.7.0",
    clusterVersion: () => "not_decided",
    storageVersion: "3.7.0",
  })({
    method: "GET",
    path: "/version",
    query: "",
    headers: new Map(),
    body: new Uint8Array(),
    peerAddress: "",
    peerCommonName: undefined,
  });
  assert.equal(answer.body, '{"etcdserver":"3.7.0","etcdcluster":"not_decided","storage":"3.7.0"}');
});

test("a peer's series are there from when it is known, at 0, and go with it for good", async () => {
  const metrics = memberMetrics(sources, { extensive: false });
  const removed = new Set<bigint>();
  const observer = transportObserver(metrics, 0xan, (id) => removed.has(id));
  const { text } = prometheusExposition(metrics.registry);
  assert.match(
    await text(),
    /^etcd_network_known_peers\{Local="a",Remote="a"\} 1$/m,
    "a member counts itself",
  );
  observer.known(0xbn, true);
  const atFirst = await text();
  for (const line of [
    'etcd_network_peer_sent_bytes_total{To="b"} 0',
    'etcd_network_peer_received_bytes_total{From="b"} 0',
    'etcd_network_peer_sent_failures_total{To="b"} 0',
    'etcd_network_peer_received_failures_total{From="b"} 0',
    'etcd_network_peer_round_trip_time_seconds_count{To="b"} 0',
    'etcd_network_known_peers{Local="a",Remote="b"} 1',
    'etcd_network_active_peers{Local="a",Remote="b"} 0',
    'etcd_network_disconnected_peers_total{Local="a",Remote="b"} 0',
    'etcd_network_snapshot_send_failures{To="b"} 0',
  ]) {
    assert.ok(atFirst.includes(`${line}\n`), line);
  }
  observer.active(0xbn, true);
  observer.snapshotSendStarted(0xbn);
  observer.snapshotReceiveStarted(0xbn);
  observer.dropped(0xbn, 0, 3);
  const atWork = await text();
  assert.match(atWork, /^etcd_network_active_peers\{Local="a",Remote="b"\} 1$/m);
  assert.match(atWork, /^etcd_network_peer_sent_failures_total\{To="b"\} 3$/m);

  removed.add(0xbn);
  observer.known(0xbn, false);
  observer.active(0xbn, false);
  observer.dropped(0xbn, 0, 1);
  observer.receiveFailed(0xbn);
  observer.snapshotSendEnded(0xbn, false, 1, 1);
  observer.snapshotReceiveEnded(0xbn, true, 1, 1);
  assert.doesNotMatch(await text(), /="b"/);
});

test("each method of etcd's services has its series for every status code from the start", async () => {
  const metrics = memberMetrics(sources, { extensive: true });
  const observer = rpcObserver(metrics, nodeClock);
  const { text } = prometheusExposition(metrics.registry);
  const handled = (await text()).match(/^grpc_server_handled_total\{.*\} 0$/gm) ?? [];
  const methods = services.flatMap((service) => Object.keys(service.methods)).length + 2;
  assert.equal(handled.length, methods * 17);
  assert.ok(!handled.some((line) => line.includes('"other"')));
  observer.started("/etcdserverpb.KV/Put");
  observer.handled("/etcdserverpb.KV/Put", GrpcCode.Canceled, nodeClock.monotonicMs());
  observer.handled("/grpc.health.v1.Health/Check", 99, nodeClock.monotonicMs());
  const after = await text();
  // Spelt as Go's client library spells codes.
  for (const line of [
    'grpc_server_started_total{grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 1',
    'grpc_server_handled_total{grpc_code="Canceled",grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 1',
    'grpc_server_handled_total{grpc_code="Unknown",grpc_method="Check",grpc_service="grpc.health.v1.Health",grpc_type="unary"} 1',
    'grpc_server_handling_seconds_count{grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 1',
  ]) {
    assert.ok(after.includes(`${line}\n`), line);
  }
});

test("a call with one answer that takes long is logged, ten lines a second at the most", () => {
  const clock = new ManualClock();
  const lines: LogFields[] = [];
  const logger = {
    ...silentLogger,
    warn: (msg: string, fields: LogFields = {}) => lines.push({ msg, ...fields }),
  };
  const slow = new SlowCalls(300, clock, logger);
  const observer = rpcObserver(memberMetrics(sources, { extensive: false }), clock, slow);
  const startedMs = clock.monotonicMs();
  const wallMs = clock.wallMs();
  clock.advance(300);
  observer.handled("/etcdserverpb.KV/Put", GrpcCode.OK, startedMs);
  assert.deepEqual(lines, [], "300 ms are not more than 300 ms");
  clock.advance(100);
  observer.handled("/etcdserverpb.Watch/Watch", GrpcCode.OK, startedMs);
  assert.deepEqual(lines, [], "a stream lasts");
  for (let call = 0; call < 13; call++)
    observer.handled("/etcdserverpb.KV/Put", GrpcCode.Unavailable, startedMs);
  assert.equal(lines.length, 10);
  assert.deepEqual(lines[0], {
    msg: "request stats",
    "start time": new Date(wallMs).toISOString(),
    "time spent": "400ms",
    "expected-duration": "300ms",
    "response type": "/etcdserverpb.KV/Put",
    code: "Unavailable",
  });
  clock.advance(1000);
  observer.handled("/etcdserverpb.KV/Range", GrpcCode.OK, startedMs);
  assert.equal(lines.length, 11);
  assert.equal(lines[10]["left-out"], 3);
});

test("the process's health: memory, files, the loop's delays and the collector's pauses", async (t) => {
  const registry = new MetricRegistry();
  t.after(processMetrics(registry));
  // The loop's own times begin with its first turn.
  await new Promise((resolve) => setTimeout(resolve, 1));
  const { text } = prometheusExposition(registry);
  const value = (exposition: string, name: string): number => {
    const line = exposition.split("\n").find((one) => one.startsWith(`${name} `));
    assert.ok(line !== undefined, `no ${name}`);
    return Number(line.split(" ")[1]);
  };
  const idle = await text();
  const { rss, external } = process.memoryUsage();
  const resident = value(idle, "process_resident_memory_bytes");
  assert.ok(resident > rss / 2 && resident < 2 * rss, `${resident} bytes, and now ${rss}`);
  assert.ok(value(idle, "nodejs_external_memory_bytes") > external / 2);
  assert.ok(value(idle, "process_max_fds") >= value(idle, "process_open_fds"));
  assert.ok(value(idle, "process_open_fds") > 2);
  assert.equal(value(idle, "os_fd_limit"), value(idle, "process_max_fds"));
  assert.ok(
    Math.abs(value(idle, "process_start_time_seconds") - (Date.now() / 1000 - process.uptime())) <
      2,
  );
  assert.ok(
    value(idle, "nodejs_heap_size_used_bytes") <= value(idle, "nodejs_heap_size_total_bytes"),
  );
  assert.match(idle, /^nodejs_heap_space_size_used_bytes\{space="old"\} [1-9]/m);
  assert.match(
    idle,
    /^nodejs_version_info\{major="\d+",minor="\d+",patch="\d+",version="v\d+\.\d+\.\d+"\} 1$/m,
  );
  for (const kind of ["major", "minor", "incremental", "weakcb"]) {
    assert.ok(idle.includes(`nodejs_gc_duration_seconds_count{kind="${kind}"}`), kind);
  }

  const active = value(idle, "quorate_process_loop_active_seconds_total");
  const garbage: unknown[] = [];
  // In turns: pauses are reported between them. Each is as long as it must be, and makes more
  // garbage than any young generation holds.
  for (let turn = 0; turn < 3; turn++) {
    const endMs = performance.now() + 100;
    for (let i = 0; i < 200_000 || performance.now() < endMs; i++)
      garbage[i % 1000] = new Array(100).fill(turn);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const busy = await text();
  const longest = value(busy, "nodejs_eventloop_lag_max_seconds");
  assert.ok(longest >= 0.09, `a turn of 100 ms shows as ${longest} s`);
  assert.ok(value(busy, "nodejs_eventloop_lag_p99_seconds") <= longest);
  const gained = value(busy, "quorate_process_loop_active_seconds_total") - active;
  assert.ok(gained >= 0.25, `300 ms of work show as ${gained} s`);
  assert.match(busy, /^nodejs_gc_duration_seconds_count\{kind="minor"\} [1-9]/m);
  assert.ok(value(busy, "process_cpu_seconds_total") > value(idle, "process_cpu_seconds_total"));
});
