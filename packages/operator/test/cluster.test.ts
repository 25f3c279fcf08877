/**
 * The plan of a cluster, over an API server and members in memory.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { KubeObject } from "../index.ts";
import { Killed, World } from "./support/world.ts";

const leaves = ["root", "member", "client"];

async function worldOf(spec: object, settled: number): Promise<World> {
  const world = new World(1n);
  await world.create(spec);
  await world.settled(settled);
  return world;
}

const podNames = (world: World): string[] =>
  world.kube
    .all("Pod")
    .map(({ metadata }) => metadata.name)
    .sort();

test("1, 3 and 5 members are begun as one and grow by learners", async () => {
  for (const size of [1, 3, 5]) {
    const world = await worldOf({ size }, size);
    assert.deepEqual(world.cloud.violations, []);
    assert.equal(world.cluster.status?.clusterID, world.cloud.clusterId);
    const budget = world.kube.find("PodDisruptionBudget", "db-members")!.spec;
    assert.deepEqual(budget, {
      minAvailable: size - 1,
      selector: {
        matchLabels: { "quorate.dev/cluster": "db", "quorate.dev/role": "member" },
      },
    });
  }
});

test("a cluster grows and shrinks; who leads does not leave", async () => {
  const world = await worldOf({ size: 3 }, 3);
  await world.change({ spec: { size: 5 } });
  await world.settled(5);
  const { leader } = world.cloud;
  await world.change({ spec: { size: 3 } });
  await world.settled(3);
  assert.ok(world.cloud.membership.split(" ").includes(leader!));
  await world.until("claims of removed members go", () => {
    return world.kube.all("PersistentVolumeClaim").length === 3;
  });
  await world.change({ spec: { size: 1 } });
  await world.settled(1);
  await world.until("pods of removed members go", () => podNames(world).length === 1);
  assert.deepEqual(world.cloud.violations, []);
});

test("a pod that is gone starts again on its claim, as the same member", async () => {
  const world = await worldOf({ size: 3 }, 3);
  const before = world.cloud.membership;
  world.cloud.killPod("db-1");
  await world.second();
  await world.settled(3);
  assert.equal(world.cloud.membership, before);
});

test("a lost disk makes a new member, with a name of its own", async () => {
  const world = await worldOf({ size: 3 }, 3);
  world.cloud.loseDisk("db-1");
  await world.until("another member", () => world.cloud.membership === "db-0 db-2 db-3");
  await world.settled(3);
  assert.deepEqual(world.cloud.violations, []);
});

test("a disk that came back empty: its member does not start in disguise", async () => {
  const world = await worldOf({ size: 3 }, 3);
  world.cloud.wipeDisk("db-1");
  await world.until("another member", () => world.cloud.membership === "db-0 db-2 db-3");
  await world.settled(3);
  assert.deepEqual(world.cloud.violations, []);
});

test("a member whose vote is needed is not replaced, whatever became of its disk", async () => {
  const world = await worldOf({ size: 3 }, 3);
  world.cloud.badImage = "quorate:1";
  const [ill, well] = world.kube.all("Pod");
  for (const other of world.kube.all("Pod").slice(1))
    world.kube.put({ ...other, spec: { containers: [{ image: "well" }] } });
  await world.until("one is ill", () => world.condition("Ready") !== "True AsWanted");
  const before = world.cloud.membership;
  world.cloud.loseDisk(well.metadata.name);
  for (let i = 0; i < 30; i++) await world.second();
  assert.equal(world.condition("Degraded"), "True NotReplaced");
  assert.equal(world.cloud.membership, before);
  world.cloud.badImage = "";
  await world.settled(3);
  assert.ok(world.cloud.membership.split(" ").includes(ill.metadata.name));
  assert.deepEqual(world.cloud.violations, []);
});

test("while a member joins, no other one is replaced, and none added for one that is away", async () => {
  const world = await worldOf({ size: 3 }, 3);
  await world.change({ spec: { size: 5 } });
  await world.until("a learner", () => world.cloud.membership.includes("+"), 30);
  world.cloud.loseDisk("db-1");
  await world.settled(5);
  assert.deepEqual(world.cloud.violations, []);
});

test("no member is added while another one is not ready", async () => {
  const world = await worldOf({ size: 3 }, 3);
  world.cloud.badImage = "quorate:1";
  for (const other of world.kube.all("Pod").slice(1))
    world.kube.put({ ...other, spec: { containers: [{ image: "well" }] } });
  await world.until("one is ill", () => world.condition("Ready") !== "True AsWanted");
  await world.change({ spec: { size: 5 } });
  for (let i = 0; i < 30; i++) await world.second();
  assert.equal(world.cloud.membership, "db-0 db-1 db-2");
  world.cloud.badImage = "";
  await world.settled(5);
});

test("a member that stays away is replaced after a time, and not before", async () => {
  const world = await worldOf({ size: 3, replaceAfterSeconds: 100 }, 3);
  world.cloud.badImage = "quorate:1";
  const [pod] = world.kube.all("Pod");
  for (const other of world.kube.all("Pod").slice(1))
    world.kube.put({ ...other, spec: { containers: [{ image: "well" }] } });
  const { name } = pod.metadata;
  for (let i = 0; i < 95; i++) await world.second();
  assert.ok(world.cloud.membership.split(" ").includes(name), "it is still a member");
  await world.until("it left", () => !world.cloud.membership.split(" ").includes(name), 30);
});

test("an upgrade restarts the leader last, and stops at a pod that is not ready", async () => {
  const world = await worldOf({ size: 3 }, 3);
  const { leader } = world.cloud;
  const uids = new Map(world.kube.all("Pod").map((one) => [one.metadata.name, one.metadata.uid]));
  const restarted: string[] = [];
  await world.change({ spec: { image: "quorate:2" } });
  await world.until("all restarted", () => {
    for (const { metadata } of world.kube.all("Pod"))
      if (uids.get(metadata.name) !== metadata.uid && !restarted.includes(metadata.name))
        restarted.push(metadata.name);
    return restarted.length === 3;
  });
  assert.equal(restarted.at(-1), leader);
  await world.settled(3);
  world.cloud.badImage = "quorate:3";
  await world.change({ spec: { image: "quorate:3" } });
  await world.until("it stops", () => world.condition("Degraded") === "True UpgradeStopped");
  for (let i = 0; i < 200; i++) await world.second();
  const images = world.kube.all("Pod").map(({ spec }) => {
    return (spec as { containers: { image: string }[] }).containers[0].image;
  });
  assert.deepEqual(images.sort(), ["quorate:2", "quorate:2", "quorate:3"]);
  assert.equal(world.cloud.membership, "db-0 db-1 db-2", "nobody was replaced for it");
  await world.change({ spec: { image: "quorate:2" } });
  await world.settled(3);
  assert.deepEqual(world.cloud.violations, []);
});

test("a pause holds everything", async () => {
  const world = await worldOf({ size: 3 }, 3);
  await world.change({ metadata: { annotations: { "quorate.dev/pause": "yes" } } });
  world.cloud.killPod("db-1");
  for (let i = 0; i < 30; i++) await world.second();
  assert.deepEqual(podNames(world), ["db-0", "db-2"]);
  assert.equal(world.condition("Ready"), "False Paused");
  await world.change({ metadata: { annotations: { "quorate.dev/pause": null } } });
  await world.settled(3);
});

test("no member is wanted: all end, and come back as the same cluster, with their data", async () => {
  const world = await worldOf({ size: 3 }, 3);
  const { clusterId, membership, acknowledged } = world.cloud;
  await world.change({ spec: { size: 0, image: "quorate:2" } });
  await world.until("nothing runs", () => podNames(world).length === 0);
  await world.second();
  assert.equal(world.condition("Ready"), "True AsWanted");
  assert.equal(world.condition("Available"), "False NoQuorum");
  assert.equal(world.cluster.status?.readyMembers, 0);
  for (let i = 0; i < 400; i++) await world.second();
  assert.equal(world.kube.all("PersistentVolumeClaim").length, 3);
  await world.change({ spec: { size: 5 } });
  await world.settled(5);
  assert.equal(world.cloud.clusterId, clusterId);
  assert.ok(world.cloud.membership.startsWith(membership), world.cloud.membership);
  assert.ok(world.cloud.acknowledged > acknowledged);
  assert.deepEqual(world.cloud.violations, []);
});

test("disks grow where their class allows it, and never become smaller", async () => {
  const world = await worldOf({ size: 3 }, 3);
  const requests = (): string[] =>
    world.kube.all("PersistentVolumeClaim").map(({ spec }) => {
      return (spec as { resources: { requests: { storage: string } } }).resources.requests.storage;
    });
  const resize = (size: string) => world.change({ spec: { storage: { size } } });
  const storageClass = { apiVersion: "storage.k8s.io/v1", kind: "StorageClass" };
  world.kube.put({ ...storageClass, metadata: { name: "disks" } });
  await resize("1.5Gi");
  await world.until("it is refused", () => world.condition("Degraded") === "True StorageFixed");
  world.kube.put({
    ...storageClass,
    metadata: { name: "disks" },
    allowVolumeExpansion: true,
  } as KubeObject);
  await world.settled(3);
  assert.deepEqual(requests(), ["1.5Gi", "1.5Gi", "1.5Gi"]);
  await resize("1536Mi");
  await world.settled(3);
  assert.deepEqual(requests(), ["1.5Gi", "1.5Gi", "1.5Gi"], "it is the same");
  await resize("1500M");
  await world.until("it is refused", () => world.condition("Degraded") === "True StorageNotShrunk");
  world.cloud.loseDisk("db-1");
  await world.until("another member", () => world.cloud.membership === "db-0 db-2 db-3");
  assert.deepEqual(requests().sort(), ["1.5Gi", "1.5Gi", "1500M"], "nothing else waits for it");
});

test("a PodMonitor is made where the kind is served, with the labels that are wanted", async () => {
  const world = await worldOf({ size: 1 }, 1);
  world.kube.unserved.delete("PodMonitor");
  await world.until("it is there", () => world.kube.all("PodMonitor").length === 1);
  await world.change({ spec: { monitor: { labels: { release: "p" } } } });
  await world.settled(1);
  const { metadata, spec } = world.kube.find("PodMonitor", "db-members")!;
  assert.equal(metadata.labels!["release"], "p");
  assert.match(JSON.stringify(spec), /"replacement":"ns\/db-etcd"/);
});

test("with an issuer cert-manager makes the certificates, and nothing runs without them", async () => {
  const world = new World(1n);
  const issuerRef = { name: "issuer", kind: "Issuer", group: "cert-manager.io" };
  await world.create({ size: 1, certificates: { validDays: 30, issuerRef } });
  await world.until("it is refused", () => world.condition("Degraded") === "True NoCertManager");
  world.kube.unserved.delete("Certificate");
  await world.until("they are asked for", () => world.kube.all("Certificate").length === 3);
  const certificate = world.kube.find("Certificate", "db-member-tls")!.spec as {
    dnsNames: string[];
    duration: string;
    secretName: string;
  };
  assert.ok(certificate.dnsNames.includes("*.db-peer.ns.svc"));
  assert.equal(certificate.duration, "720h");
  await world.second();
  assert.deepEqual(podNames(world), []);
  for (const leaf of leaves) {
    const certPem = btoa(`${leaf}|0|${world.clock.wallMs() + 1e9}|other\n`);
    world.kube.put({
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        name: `db-${leaf}-tls`,
        namespace: "ns",
        labels: { "quorate.dev/cluster": "db" },
      },
      data: { "tls.crt": certPem, "tls.key": btoa("key"), "ca.crt": btoa("other") },
    });
  }
  await world.settled(1);
  assert.equal(world.kube.find("Secret", "db-ca"), undefined);
  await world.change({ spec: { certificates: { validDays: 60 } } });
  await world.settled(1);
  const changed = world.kube.find("Certificate", "db-root-tls")!.spec as { duration: string };
  assert.equal(changed.duration, "1440h");
});

test("members are spread over zones, and another one takes the zone of the one that is lost", async () => {
  const world = await worldOf({ size: 3, zones: ["a", "b", "c"] }, 3);
  const zones = (): string[] =>
    world.kube.all("Pod").map(({ metadata, spec }) => {
      const { nodeSelector } = spec as { nodeSelector: Record<string, string> };
      return `${metadata.name} ${nodeSelector["topology.kubernetes.io/zone"]}`;
    });
  assert.deepEqual(zones().sort(), ["db-0 a", "db-1 b", "db-2 c"]);
  world.cloud.killPod("db-1");
  await world.second();
  await world.settled(3);
  assert.deepEqual(zones().sort(), ["db-0 a", "db-1 b", "db-2 c"], "where its disk is");
  world.cloud.loseDisk("db-1");
  await world.until("another member", () => world.cloud.membership === "db-0 db-2 db-3");
  await world.settled(3);
  assert.deepEqual(zones().sort(), ["db-0 a", "db-2 c", "db-3 b"]);
  await world.change({ spec: { size: 5 } });
  await world.settled(5);
  assert.deepEqual(zones().sort().slice(3), ["db-4 a", "db-5 b"]);
});

test("a lost quorum: nothing by itself, and the survivor's data when it is wanted", async () => {
  const world = await worldOf({ size: 3 }, 3);
  const { clusterId } = world.cloud;
  const [leader, others] = [
    world.cloud.leader!,
    podNames(world).filter((name) => name !== world.cloud.leader),
  ];
  for (const name of others) world.cloud.loseDisk(name);
  await world.until("it is noticed", () => world.condition("Degraded") === "True QuorumLost");
  for (let i = 0; i < 100; i++) await world.second();
  assert.equal(world.condition("Degraded"), "True QuorumLost");
  await world.change({ metadata: { annotations: { "quorate.dev/recover-quorum": "yes" } } });
  await world.settled(3);
  assert.equal(world.cloud.clusterId, clusterId);
  assert.ok(world.cloud.membership.split(" ").includes(leader));
  assert.equal(world.cluster.status?.recovery, undefined);
  assert.deepEqual(world.cloud.violations, [], "the leader had all that was acknowledged");
});

test("a recovery is refused while a member is merely away", async () => {
  const world = await worldOf({ size: 3, recovery: "auto" }, 3);
  await world.change({ metadata: { annotations: { "quorate.dev/pause": "yes" } } });
  world.cloud.loseDisk("db-0");
  world.cloud.loseDisk("db-1");
  world.cloud.killPod("db-2");
  world.cloud.badImage = "quorate:1";
  const reach = world.cloud.members.reach;
  Object.assign(world.cloud.members, { reach: async () => undefined });
  await world.change({ metadata: { annotations: { "quorate.dev/pause": null } } });
  await world.until("refused", () => world.condition("Degraded") === "True RecoveryRefused");
  Object.assign(world.cloud.members, { reach });
  world.cloud.badImage = "";
  await world.settled(3);
});

test("certificates are renewed when a third of their time is left, and at request", async () => {
  const world = await worldOf({ size: 1, certificates: { validDays: 3 } }, 1);
  const certificate = (name: string): string =>
    world.kube.find("Secret", `db-${name}-tls`)!.data!["tls.crt"];
  const first = leaves.map(certificate);
  world.clock.advance(40 * 3_600_000);
  await world.second();
  assert.deepEqual(leaves.map(certificate), first);
  world.clock.advance(9 * 3_600_000);
  await world.second();
  const second = leaves.map(certificate);
  for (const [i, text] of second.entries()) assert.notEqual(text, first[i]);
  await world.change({ metadata: { annotations: { "quorate.dev/rotate-certificates": "now" } } });
  await world.second();
  for (const [i, text] of leaves.map(certificate).entries()) assert.notEqual(text, second[i]);
});

test("at every moment of a new authority's way in, all trust what any shows", async () => {
  const world = new World(3n, 30_000);
  await world.create({ size: 1 });
  await world.settled(1);
  const authority = world.kube.find("Secret", "db-ca")!.data!["tls.crt"];
  const text = (secret: string, name: string): string =>
    atob(world.kube.find("Secret", secret)?.data?.[name] ?? "");
  let bundles: string[] = [];
  await world.change({ metadata: { annotations: { "quorate.dev/rotate-authority": "now" } } });
  for (let i = 0; i < 120; i++) {
    await world.second();
    const signer = text("db-member-tls", "tls.crt").trimEnd().split("|")[3];
    // A member may still have the files of half a minute ago.
    bundles = [...bundles.slice(-29), text("db-member-tls", "ca.crt")];
    for (const bundle of bundles)
      assert.ok(bundle.includes(`${signer}|`), `${signer} in ${bundle}`);
  }
  assert.notEqual(world.kube.find("Secret", "db-ca")!.data!["tls.crt"], authority);
  assert.equal(bundles.at(-1)!.trimEnd().split("\n").length, 1);
  assert.equal(world.condition("Ready"), "True AsWanted");
});

/**
 * A cluster is made, upgraded, loses a disk, and then its quorum; the operator is killed once,
 * before or after the change of that number. Returns how many changes there were.
 */
async function livesThrough(number: number, moment: "before" | "after"): Promise<number> {
  const world = new World(11n);
  let changes = 0;
  world.killer = (call, now) => {
    if (/^(?:list|get|membership)/.test(call) || now !== moment) return;
    if (++changes === number) throw new Killed(call);
  };
  await world.create({ size: 3, recovery: "auto" });
  await world.settled(3);
  await world.change({ spec: { image: "quorate:2" } });
  await world.settled(3);
  const { leader } = world.cloud;
  const isNoticed = (): boolean => world.condition("Ready") !== "True AsWanted";
  world.cloud.loseDisk(podNames(world).find((name) => name !== leader)!);
  await world.until("it is noticed", isNoticed);
  await world.settled(3);
  const { clusterId } = world.cloud;
  const survivor = world.cloud.leader;
  const others = podNames(world).filter((name) => name !== survivor);
  for (const name of others) world.cloud.loseDisk(name);
  await world.until("it is noticed", isNoticed);
  await world.settled(3);
  assert.deepEqual(world.cloud.violations, [], `killed ${moment} change ${number}`);
  assert.equal(world.cloud.clusterId, clusterId);
  for (const name of others) assert.ok(!world.cloud.membership.split(" ").includes(name), name);
  return changes;
}

test("the operator is killed before and after each of its changes", async () => {
  const all = await livesThrough(0, "before");
  assert.ok(all > 50, `${all} changes`);
  for (let number = 1; number <= all; number++)
    for (const moment of ["before", "after"] as const) await livesThrough(number, moment);
});

/** A life from a seed: sizes, images, kills, lost disks; the operator is killed at any call. */
async function life(seed: bigint): Promise<World> {
  const world = new World(seed);
  const random = new SeededRandom(seed).fork("faults");
  await world.create({ size: 3, replaceAfterSeconds: 40 });
  let size = 3;
  let image = 1;
  let lastLossAt = 0;
  world.killer = (call) => {
    if (random.below(25) === 0) throw new Killed(call);
  };
  for (let second = 0; second < 600; second++) {
    await world.second();
    const names = podNames(world);
    const pick = (): string | undefined => names[random.below(Math.max(1, names.length))];
    switch (random.below(60)) {
      case 0:
        world.cloud.killPod(pick() ?? "");
        break;
      case 1: {
        // At most one disk until all is well again, so that the rest can always decide.
        const isWell = world.condition("Ready") === "True AsWanted" && size > 1;
        if (!isWell || second - lastLossAt < 20) break;
        lastLossAt = second;
        world.cloud.loseDisk(pick() ?? "");
        break;
      }
      case 2:
        size = [0, 1, 3, 5][random.below(4)];
        await world.change({ spec: { size } });
        break;
      case 3:
        await world.change({ spec: { image: `quorate:${++image}` } });
        break;
      case 4:
        await world.change({
          metadata: { annotations: { "quorate.dev/rotate-certificates": String(second) } },
        });
        break;
    }
  }
  world.killer = () => {};
  size = Math.max(size, 1);
  await world.change({ spec: { size } });
  await world.settled(size);
  return world;
}

const lives = Number(process.env["QUORATE_OPERATOR_LIVES"] ?? "6");
const firstSeed = BigInt(process.env["QUORATE_OPERATOR_SEED"] ?? "1");

test(`lives from ${lives} seeds, with an operator that is killed at any call`, async () => {
  for (let i = 0n; i < BigInt(lives); i++) {
    const seed = firstSeed + i;
    const world = await life(seed).catch((error: Error) => {
      throw new Error(`seed ${seed}: ${error.message}`, { cause: error });
    });
    assert.deepEqual(world.cloud.violations, [], `seed ${seed}`);
    assert.ok(world.cloud.acknowledged > 100, `seed ${seed}: ${world.cloud.acknowledged} writes`);
  }
});
