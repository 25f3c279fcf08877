/** What a proxy knows of other proxies and of the members, and what its HTTP side reports. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { type LogFields, type Logger, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { fromUtf8, type Member, MemberListResponse, toUtf8 } from "@quorate/proto";
import { Upstream } from "@quorate/proxy";
import { discover } from "../node/discovery.ts";
import { followMembers } from "../node/grpc-proxy.ts";
import { memberMetrics, routes } from "../node/http-endpoints.ts";
import { decodeRecord, encodeRecord } from "../src/cluster/endpoint-records.ts";
import { MAX_PROXIES } from "../src/cluster/proxy-list.ts";
import { clusterHealth, healthHandler, proxyHealth } from "../src/http/health.ts";
import { MAX_WAITING_LEASES } from "../src/lease/keep-alive-link.ts";
import { MemoryChannel } from "./support/memory-channel.ts";
import { keepAlive, World } from "./support/world.ts";

const MEMBER_LIST = "/etcdserverpb.Cluster/MemberList";
const REGISTERED = { advertised: "p1:1", resolverPrefix: "/proxies", resolverTtlSeconds: 9 };
const count = (world: World, name: string): number =>
  world.cluster.calls.filter((one) => one === name).length;

async function listed(world: World): Promise<string[]> {
  const { members } = MemberListResponse.decode(await world.call(MEMBER_LIST, new Uint8Array(0)));
  return members.map(({ name, clientURLs }) => `${name} ${clientURLs.join()}`);
}

test("a proxy registers by a lease, and lists what is registered", async () => {
  const world = new World(REGISTERED);
  assert.deepEqual(await listed(world), ["host p1:1"], "before it is registered");
  world.proxy.start();
  await world.settle();
  assert.equal(toUtf8(fromUtf8(world.cluster.history[0].key)), "/proxies/p1:1");
  world.cluster.put("/proxies/p0:1", encodeRecord({ address: "p0:1", name: "other" }));
  world.cluster.put("/proxies/bad", fromUtf8("{"));
  world.cluster.put("/elsewhere", encodeRecord({ address: "x", name: "x" }));
  await world.settle();
  assert.deepEqual(await listed(world), ["other p0:1", "host p1:1"]);
  await world.settle(10_000);
  assert.ok(count(world, "KeepAlive") >= 2, "the lease is kept alive");
  assert.equal(count(world, "LeaseGrant"), 1);
  world.cluster.ttl = 0;
  await world.settle(6000);
  assert.equal(count(world, "LeaseGrant"), 2, "and a lost one is replaced");
  await world.proxy.close();
  assert.equal(count(world, "LeaseRevoke"), 1);
});

test("a proxy registers when the cluster can be reached, from within its namespace", async () => {
  const world = new World({ ...REGISTERED, namespace: "ns/" });
  for (const member of world.members) member.isDown = true;
  world.proxy.start();
  await world.settle(10_000);
  for (const member of world.members) member.isDown = false;
  await world.settle(10_000);
  assert.equal(world.cluster.history[0].key, "ns//proxies/p1:1");
  assert.deepEqual(await listed(world), ["host p1:1"]);
});

test("records: bounded, and only what is well formed", async () => {
  assert.deepEqual(decodeRecord(fromUtf8('{"Op":0,"Addr":"a","Metadata":"{}"}')), {
    address: "a",
    name: "",
  });
  for (const text of ["", "[]", '{"Addr":1}', "x".repeat(70_000), "null"])
    assert.equal(decodeRecord(fromUtf8(text)), undefined, text.slice(0, 10));
  const world = new World(REGISTERED);
  world.proxy.start();
  await world.settle();
  const value = encodeRecord({ address: "p", name: "p" });
  for (let i = 0; i < MAX_PROXIES + 5; i++) world.cluster.put(`/proxies/${i}`, value);
  await world.settle();
  assert.equal((await listed(world)).length, MAX_PROXIES);
});

test("endpoints follow the members", async () => {
  const world = new World();
  const { clock, upstream, cluster } = world;
  const opened: string[] = [];
  const open = (endpoint: string) => {
    opened.push(endpoint);
    return new MemoryChannel(endpoint, cluster.services, clock);
  };
  const options = { intervalMs: 1000, open };
  const logged: unknown[] = [];
  const info = (_: string, fields?: LogFields): unknown => logged.push(fields?.["endpoints"]);
  const logger = { ...silentLogger, info } as Logger;
  const timer = followMembers(upstream, options, { clock, logger });
  const member = (name: string, url: string, isLearner = false): Member => ({
    ID: 1n,
    name,
    peerURLs: [],
    clientURLs: [url],
    isLearner,
  });
  const many = Array.from({ length: 70 }, (_, i) => member("m", `x${i}:1`));
  cluster.members = [member("a", "m0:2379"), member("", "unnamed:1"), member("l", "l:1", true)];
  await world.settle(1100);
  assert.deepEqual(upstream.channels, [world.members[0]], "the known one stays");
  assert.deepEqual(opened, []);
  cluster.members = many;
  await world.settle(1100);
  assert.equal(upstream.size, 64);
  await world.settle(2200);
  assert.equal(logged.length, 2, "each change is logged once");
  assert.deepEqual((logged[1] as string[]).slice(0, 2), ["x0:1", "x1:1"]);
  timer.cancel();
});

test("health: a read of the cluster; a read and a watch through the proxy itself", async () => {
  const world = new World();
  const request = {
    method: "GET",
    path: "/health",
    query: "",
    headers: {},
    body: new Uint8Array(0),
  };
  const ask = async (check: Parameters<typeof healthHandler>[0], method = "GET") => {
    const response = healthHandler(check)({ ...request, method } as never);
    await world.settle(6000);
    const { status, body } = await response;
    return `${status} ${String(body).trim()}`;
  };
  const good = '200 {"health":"true","reason":""}';
  assert.equal(await ask(clusterHealth(world.upstream)), good);
  world.cluster.forbidden.set("", "a");
  assert.equal(await ask(clusterHealth(world.upstream)), good, "it is the cluster that refuses");
  world.cluster.forbidden.clear();
  const self = new Upstream(
    [new MemoryChannel("self", world.proxy.services, world.clock)],
    world.clock,
  );
  assert.equal(await ask(proxyHealth(self)), good);
  assert.equal(
    await ask(proxyHealth(undefined)),
    '503 {"health":"false","reason":"no connection to proxy"}',
  );
  assert.match(await ask(clusterHealth(world.upstream), "POST"), /^405 /);
  for (const member of world.members) {
    member.kill();
    member.isDown = true;
  }
  assert.match(await ask(clusterHealth(world.upstream)), /^503 \{"health":"false","reason":"GET/);
});

test("a member's metrics; a page that is too long, and one that is not there", async (t) => {
  let body = "etcd_x 1\n";
  const server = createServer((_, response) => response.end(body)).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  let url = `http://127.0.0.1:${port}/metrics`;
  const handler = routes(new Map([["/metrics", memberMetrics(() => ({ url, tls: {} }))]]));
  const get = async (path: string) => {
    const { status, body: found } = await handler({ path } as never);
    return [status, Buffer.from(found).toString().slice(0, 30)];
  };
  assert.deepEqual(await get("/metrics"), [200, "etcd_x 1\n"]);
  body = "x".repeat(65 * 1024 * 1024);
  assert.deepEqual(await get("/metrics"), [500, "Internal server error\n"]);
  url = "http://127.0.0.1:1/metrics";
  assert.deepEqual(await get("/metrics"), [500, "Internal server error\n"]);
  assert.deepEqual(await get("/else"), [404, "404 page not found\n"]);
});

test("SRV records: both services, a bound, and certificates unless they are not wanted", async () => {
  const names = {
    async lookupSrv(service: string) {
      if (service === "etcd-client-ssl") throw new Error("no such host");
      return Array.from({ length: 70 }, (_, i) => ({
        host: `h${i}`,
        port: 1,
        priority: i,
        weight: 2,
      }));
    },
  };
  const flags = { domain: "d", serviceName: "", isInsecure: true, caPem: undefined };
  const found = await discover(flags, names, silentLogger);
  assert.equal(found.length, 64);
  assert.deepEqual(found[1], {
    endpoint: "http://h1:1",
    target: { host: "h1", port: 1, priority: 1, weight: 2 },
  });
  assert.deepEqual(await discover({ ...flags, isInsecure: false }, names, silentLogger), []);
  assert.deepEqual(await discover({ ...flags, domain: "" }, names, silentLogger), []);
  const none = { lookupSrv: () => Promise.reject(new Error("no such host")) };
  await assert.rejects(discover(flags, none, silentLogger), {
    message:
      "dns lookup errors: lookup _etcd-client-ssl._tcp.d: no such host and " +
      "lookup _etcd-client._tcp.d: no such host",
  });
});

test("what waits for a member is bounded: bytes of a stream, and leases of a token", async () => {
  const silent = {
    endpoint: "m:1",
    ready: undefined,
    close: () => {},
    connect: () => new Promise<never>(() => {}),
  };
  let ended: number | undefined;
  const stream = new Upstream([silent], new ManualClock()).stream("/x/y", [], {
    message() {},
    ended: ({ code }) => {
      ended = code;
    },
  });
  for (let i = 0; i < 4; i++) assert.equal(stream.send(new Uint8Array(1024 * 1024)), true);
  assert.equal(stream.send(new Uint8Array(1)), false);
  assert.equal(ended, 8);
  const world = new World();
  for (const member of world.members) member.isDown = true;
  const leases = world.stream("/etcdserverpb.Lease/LeaseKeepAlive");
  for (let i = 0; i <= MAX_WAITING_LEASES; i++) keepAlive(leases, BigInt(i + 1));
  assert.equal(leases.status?.code, 8);
});
