/** Addresses and ports of Services: none twice, none lost, whatever ends when. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, SeededRandom } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { MemoryCluster } from "@quorate/kube-storage/testing";
import { PortSet } from "../../src/builtin/node-ports.ts";
import { AddressRange } from "../../src/builtin/service-ranges.ts";
import { DELETION_GRACE_MS } from "../../src/controllers/service-cidrs.ts";
import {
  REPAIR_PERIOD_MS,
  type ServiceNetworkOptions,
} from "../../src/controllers/service-network.ts";
import { ApiWorld } from "../support/api-world.ts";

const ROOT = "/api/v1/namespaces/default/services";
const ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses";
const PORTS = { first: 30_000, last: 30_007 };

const LESS = { first: 30_000, last: 30_015 };

const network = (range: string, nodePorts = PORTS) => ({
  serviceNetwork: { ranges: range.split(","), nodePorts } satisfies ServiceNetworkOptions,
});

type Fields = Readonly<Record<string, unknown>>;

const service = (name: string, spec: Fields = {}) => ({
  metadata: { name },
  spec: { ports: [{ port: 80 }], ...spec },
});

const post = (world: ApiWorld, name: string, spec: Fields = {}) =>
  world.request(ROOT, { method: "POST", body: service(name, spec) });

const remove = (world: ApiWorld, name: string) => world.ok(`${ROOT}/${name}`, { method: "DELETE" });

async function addressesOf(world: ApiWorld): Promise<string[]> {
  const { items } = await world.ok(ADDRESSES);
  return items.map((one: { metadata: { name: string } }) => one.metadata.name).sort();
}

test("A range gives its addresses but for the network's name and the last one", () => {
  const shown = (cidr: string) => {
    const range = AddressRange.parse(cidr);
    return (
      range && [range.cidr, range.size, range.staticSize, range.at(0), range.at(range.size - 1)]
    );
  };
  assert.deepEqual(shown("10.0.0.77/24"), ["10.0.0.0/24", 254, 16, "10.0.0.1", "10.0.0.254"]);
  assert.deepEqual(shown("10.0.0.0/12"), [
    "10.0.0.0/12",
    2 ** 20 - 2,
    256,
    "10.0.0.1",
    "10.15.255.254",
  ]);
  assert.deepEqual(shown("fd00::/112"), ["fd00::/112", 65_535, 256, "fd00::1", "fd00::ffff"]);
  assert.equal(AddressRange.parse("fd00::/64")?.at(2 ** 40), "fd00::100:0:1");
  for (const wrong of ["fd00::/63", "10.0.0.0", "10.0.0.0/33", "x/8", ""])
    assert.equal(AddressRange.parse(wrong), undefined);
  const range = AddressRange.parse("10.0.0.0/30");
  const given = ["10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.1.1", "fd00::1", "x"];
  assert.deepEqual(
    given.filter((address) => range?.gives(address)),
    ["10.0.0.1", "10.0.0.2"],
  );
  assert.equal(AddressRange.parse("10.0.0.0/31")?.size, 0);
});

test("Ports of nodes: dynamic ones first above those that are asked for", () => {
  const random = new SeededRandom(1n);
  const set = new PortSet({ first: 30_000, last: 30_031 }, new Uint8Array(), random);
  const dynamic = Array.from({ length: 16 }, () => set.takeAny());
  assert.equal(Math.min(...dynamic), 30_016);
  assert.equal(new Set(dynamic).size, 16);
  assert.ok(set.takeAny() < 30_016);
  for (let left = 0; left < 15; left++) set.takeAny();
  assert.throws(() => set.takeAny(), /range is full/);
  set.release(30_020);
  set.release(99);
  assert.equal(set.takeAny(), 30_020);
  assert.equal(set.taken.length, 33);
});

test("A full range refuses, and gives again what goes", async (t) => {
  // Two addresses and eight ports.
  const world = await ApiWorld.open(t, network("10.0.0.0/30"));
  for (const name of ["a", "b"]) assert.equal((await post(world, name)).status, 201);
  const full = await post(world, "c");
  assert.equal(full.status, 500);
  const text = "Internal error occurred: failed to allocate a serviceIP: range is full";
  assert.equal(full.json.message, text);
  await remove(world, "a");
  assert.equal((await post(world, "c")).status, 201);
  const ports = Array.from({ length: 9 }, (_, i) => ({ name: `p${i}`, port: 80 + i }));
  const headless = { clusterIP: "None", ports };
  assert.equal((await post(world, "d", headless)).status, 201);
  await remove(world, "b");
  const many = await post(world, "e", { type: "NodePort", ports });
  const why = "Internal error occurred: failed to allocate a nodePort: range is full";
  assert.equal(many.json.message, why);
  // What the refused one took is free: its address and its eight ports.
  const some = await post(world, "e", { type: "NodePort", ports: ports.slice(1) });
  assert.equal(some.status, 201);
  assert.deepEqual(await addressesOf(world), ["10.0.0.1", "10.0.0.2"]);
});

test("Two servers on one store give no address and no port twice; a third one knows all", async (t) => {
  const cluster = new MemoryCluster();
  const options = network("10.0.0.0/26", { first: 30_000, last: 30_063 });
  const servers = [
    await ApiWorld.open(t, options, cluster),
    await ApiWorld.open(t, options, cluster),
  ];
  const made = await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      post(servers[i % 2] as ApiWorld, `s${i}`, { type: "NodePort" }),
    ),
  );
  assert.deepEqual(new Set(made.map(({ status }) => status)), new Set([201]));
  const specs = made.map(({ json }) => json.spec);
  assert.equal(new Set(specs.map(({ clusterIP }) => clusterIP)).size, 60);
  assert.equal(new Set(specs.map(({ ports }) => ports[0].nodePort)).size, 60);
  const third = await ApiWorld.open(t, options, cluster);
  const [{ clusterIP, ports }] = specs;
  const taken = await post(third, "x", { clusterIP });
  assert.match(taken.json.message, /provided IP is already allocated/);
  const { nodePort } = ports[0];
  const again = await post(third, "x", { type: "NodePort", ports: [{ port: 80, nodePort }] });
  assert.match(again.json.message, /provided port is already allocated/);
  for (const name of ["y", "z"]) assert.equal((await post(third, name)).status, 201);
  assert.match((await post(third, "full")).json.message, /range is full/);
});

/** A clock that is behind or ahead, and whose repeated tasks a test runs. */
function clockAt(offsetMs: number) {
  const tasks = new Map<number, () => void>();
  const clock: Clock = Object.create(nodeClock, {
    wallMs: { value: () => nodeClock.wallMs() + offsetMs },
    every: {
      value: (periodMs: number, task: () => void) => {
        tasks.set(periodMs, task);
        return { cancel() {} };
      },
    },
  });
  return { clock, repeat: (periodMs: number) => tasks.get(periodMs)?.() };
}

test("A repair takes what services hold, and in time releases what nobody holds", async (t) => {
  const cluster = new MemoryCluster();
  const options = network("10.0.0.0/24");
  const { clock } = clockAt(-30_000);
  const first = await ApiWorld.open(t, options, cluster, { clock });
  const { json } = await post(first, "a", { type: "NodePort" });
  const { clusterIP, ports } = json.spec;
  // An address of a server that ended before it wrote the service, and a lost one.
  const orphan = {
    metadata: {
      name: "10.0.0.9",
      labels: { "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io" },
    },
    spec: { parentRef: { resource: "services", namespace: "default", name: "gone" } },
  };
  await first.ok(ADDRESSES, { method: "POST", body: orphan });
  await first.ok(`${ADDRESSES}/${clusterIP}`, { method: "DELETE" });
  // Another range of ports: all is counted anew.
  const second = await ApiWorld.open(t, network("10.0.0.0/24", LESS), cluster);
  assert.deepEqual(await addressesOf(second), ["10.0.0.9", clusterIP].sort(), "young ones stay");
  const nodePort = ports[0].nodePort;
  const taken = await post(second, "b", { type: "NodePort", ports: [{ port: 80, nodePort }] });
  assert.match(taken.json.message, /provided port is already allocated/);
  const stale = await post(first, "b", { type: "NodePort" });
  assert.match(stale.json.message, /does not match the current port range/);
  await remove(first, "a");
  // Not even the service's ports went back, since the ranges differ.
  const later = clockAt(90_000);
  const third = await ApiWorld.open(t, network("10.0.0.0/24", LESS), cluster, later);
  assert.deepEqual(await addressesOf(third), []);
  const asked = { type: "NodePort", ports: [{ port: 80, nodePort }] };
  for (let repairs = 1; (await post(third, "b", asked)).status !== 201; repairs++) {
    assert.ok(repairs < 100);
    later.repeat(REPAIR_PERIOD_MS);
    await nodeClock.turns.next();
  }
});

test("A range stays while its addresses are used, and a while longer", async (t) => {
  let aheadMs = 0;
  const clock: Clock = Object.create(nodeClock, {
    wallMs: { value: () => nodeClock.wallMs() + aheadMs },
  });
  const controllers = new Set(["service-cidr-controller"] as const);
  const policy = { plugins: new Set<never>(), rootCaPem: "", identity: "a", controllers };
  const options = { ...network("10.0.0.0/24"), policy: { ...policy, createsDefaultRoles: false } };
  const world = await ApiWorld.open(t, options, undefined, { clock });
  const ranges = "/apis/networking.k8s.io/v1/servicecidrs";
  const create = (name: string, cidr: string) =>
    world.ok(ranges, { method: "POST", body: { metadata: { name }, spec: { cidrs: [cidr] } } });
  const until = async (name: string, status: string): Promise<Fields> => {
    for (;;) {
      const { json } = await world.request(`${ranges}/${name}`);
      const [ready] = json.status?.conditions ?? [];
      if (ready?.status === status || json.code === Number(status)) return json;
      await nodeClock.turns.next();
    }
  };
  const finalizers = ({ metadata }: Fields) => (metadata as Fields)["finalizers"];
  const drop = (name: string) => world.ok(`${ranges}/${name}`, { method: "DELETE" });

  await create("more", "10.7.0.0/24");
  const kept = ["networking.k8s.io/service-cidr-finalizer"];
  assert.deepEqual(finalizers(await until("more", "True")), kept);
  assert.equal((await post(world, "a", { clusterIP: "10.7.0.5" })).status, 201);
  await drop("more");
  const blocked = await until("more", "False");
  assert.match(JSON.stringify(blocked), /"reason":"Terminating".*still IPAddresses referencing/);
  assert.match((await post(world, "b", { clusterIP: "10.7.0.6" })).text, /not match the current/);
  // Another range has the address, so this one is not needed; a while after its deletion it goes.
  await create("wide", "10.7.0.0/16");
  await until("wide", "True");
  assert.deepEqual(finalizers(await until("more", "False")), kept);
  aheadMs = 2 * DELETION_GRACE_MS;
  await create("wake", "10.9.0.0/24");
  await until("more", "404");
  // The wide one is needed until the service goes.
  await drop("wide");
  await until("wide", "False");
  aheadMs = 4 * DELETION_GRACE_MS;
  await remove(world, "a");
  await until("wide", "404");
});

test("Both families: the second one comes, goes and is given back", async (t) => {
  const world = await ApiWorld.open(t, network("10.0.0.0/24,fd00::/112"));
  const patch = async (spec: Fields) => {
    const headers = { "content-type": "application/merge-patch+json" };
    const body = { spec };
    return (await world.ok(`${ROOT}/a`, { method: "PATCH", body, headers })).spec;
  };
  const { json } = await post(world, "a", { ipFamilyPolicy: "PreferDualStack" });
  assert.deepEqual(json.spec.ipFamilies, ["IPv4", "IPv6"]);
  assert.equal((await addressesOf(world)).length, 2);
  const single = await patch({ ipFamilyPolicy: "SingleStack" });
  assert.deepEqual(single.clusterIPs, [json.spec.clusterIP]);
  assert.deepEqual(await addressesOf(world), [json.spec.clusterIP]);
  const both = await patch({ ipFamilyPolicy: "RequireDualStack" });
  assert.equal(both.clusterIPs.length, 2);
  assert.deepEqual(await addressesOf(world), [...both.clusterIPs].sort());
  const six = await post(world, "six", { ipFamilies: ["IPv6"], clusterIP: "fd00::5" });
  assert.deepEqual(six.json.spec.clusterIPs, ["fd00::5"]);
  await remove(world, "a");
  assert.deepEqual(await addressesOf(world), ["fd00::5"]);
});

test("An update that loses its races leaves nothing taken", async (t) => {
  const world = await ApiWorld.open(t, network("10.0.0.0/28"));
  assert.equal((await post(world, "a", { type: "ExternalName", externalName: "a.b" })).status, 201);
  const headers = { "content-type": "application/merge-patch+json" };
  const patches = Array.from({ length: 12 }, (_, i) => ({
    metadata: { labels: { [`l${i}`]: "x" } },
    spec: { type: "NodePort", externalName: null },
  }));
  await Promise.all(
    patches.map((body) => world.ok(`${ROOT}/a`, { method: "PATCH", body, headers })),
  );
  const { spec } = await world.ok(`${ROOT}/a`);
  assert.deepEqual(await addressesOf(world), [spec.clusterIP]);
  const ports = Array.from({ length: 7 }, (_, i) => ({ name: `p${i}`, port: 80 + i }));
  assert.equal((await post(world, "b", { type: "NodePort", ports })).status, 201);
});
