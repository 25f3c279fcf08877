/** The garbage collector: its rules one by one, and random histories against a model. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { DeletionPropagation, KubeObject, OwnerReference } from "@quorate/kube-storage";
import { GcModel } from "./gc-model.ts";
import { driven, startServer, type TestServer, until } from "./server.ts";
import { plainResource } from "./world.ts";

const KINDS: Readonly<Record<string, { group: string; version: string; resource: string }>> = {
  ConfigMap: { group: "", version: "v1", resource: "configmaps" },
  Secret: { group: "", version: "v1", resource: "secrets" },
  ClusterRole: { group: "rbac.authorization.k8s.io", version: "v1", resource: "clusterroles" },
};
const NAMESPACE = "n";

class Objects {
  readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  drive<T>(work: Promise<T>): Promise<T> {
    return driven(this.server.clock, work);
  }

  create(
    kind: string,
    name: string,
    refs: readonly OwnerReference[] = [],
    finalizers: string[] = [],
  ) {
    const apiVersion = kind === "ClusterRole" ? "rbac.authorization.k8s.io/v1" : "v1";
    const metadata = { name, ownerReferences: refs, finalizers };
    const namespace = kind === "ClusterRole" ? "" : NAMESPACE;
    const object: KubeObject = { apiVersion, kind, metadata };
    return this.drive(this.server.runtime.client.create(KINDS[kind], namespace, object));
  }

  get(kind: string, name: string): Promise<KubeObject | undefined> {
    const namespace = kind === "ClusterRole" ? "" : NAMESPACE;
    return this.drive(this.server.runtime.client.get(KINDS[kind], namespace, name));
  }

  delete(object: KubeObject, propagationPolicy: DeletionPropagation): Promise<void> {
    const { namespace = "", name = "" } = object.metadata;
    return this.drive(
      this.server.runtime.client.delete(KINDS[object.kind], namespace, name, { propagationPolicy }),
    );
  }

  setRefs(object: KubeObject, ownerReferences: readonly OwnerReference[]) {
    return this.change(object, (it) => ({ ...it, metadata: { ...it.metadata, ownerReferences } }));
  }

  change(object: KubeObject, change: (it: KubeObject) => KubeObject) {
    const { namespace = "", name = "" } = object.metadata;
    return this.drive(
      this.server.runtime.client.update(KINDS[object.kind], namespace, name, change),
    );
  }

  /** Waits until the object is gone. */
  gone({ kind, metadata }: KubeObject): Promise<void> {
    return until(this.server.clock, `the end of ${metadata.name}`, async () => {
      return (await this.get(kind, metadata.name!)) === undefined;
    });
  }

  /** Lets time pass in which nothing may happen. */
  idle(): Promise<void> {
    return this.server.clock.advanceAsync(3000);
  }
}

async function start(): Promise<Objects> {
  const server = await startServer();
  await driven(server.clock, server.world.namespace(NAMESPACE));
  await until(server.clock, "a leader", () => server.runtime.isLeader);
  const objects = new Objects(server);
  await objects.idle();
  return objects;
}

function refTo(
  { apiVersion, kind, metadata }: KubeObject,
  blockOwnerDeletion = false,
): OwnerReference {
  return { apiVersion, kind, name: metadata.name!, uid: metadata.uid!, blockOwnerDeletion };
}

test("background: dependents go after the owner, across kinds and generations", async () => {
  const objects = await start();
  const owner = await objects.create("ConfigMap", "owner");
  const child = await objects.create("Secret", "child", [refTo(owner)]);
  const grandchild = await objects.create("ConfigMap", "grandchild", [refTo(child)]);
  await objects.delete(owner, "Background");
  await objects.gone(grandchild);
  assert.equal(await objects.get("Secret", "child"), undefined);
  await objects.server.stop();
});

test("foreground: the owner waits for those that block it", async () => {
  const objects = await start();
  const owner = await objects.create("ConfigMap", "owner");
  const held = await objects.create("Secret", "held", [refTo(owner, true)], ["example.org/wait"]);
  const free = await objects.create("Secret", "free", [refTo(owner, false)], ["example.org/wait"]);
  await objects.delete(owner, "Foreground");
  await until(objects.server.clock, "the dependent's deletion", async () => {
    return (await objects.get("Secret", "held"))!.metadata.deletionTimestamp !== undefined;
  });
  await objects.idle();
  assert.deepEqual((await objects.get("ConfigMap", "owner"))!.metadata.finalizers, [
    "foregroundDeletion",
  ]);
  const release = (it: KubeObject) => ({ ...it, metadata: { ...it.metadata, finalizers: [] } });
  await objects.change(held, release);
  await objects.gone(owner);
  await until(objects.server.clock, "the other's deletion", async () => {
    return (await objects.get("Secret", "free"))!.metadata.deletionTimestamp !== undefined;
  });
  await objects.change(free, release);
  await objects.gone(free);
  await objects.server.stop();
});

test("orphan: dependents lose the reference and stay", async () => {
  const objects = await start();
  const owner = await objects.create("ConfigMap", "owner");
  await objects.create("Secret", "child", [refTo(owner)]);
  await objects.idle();
  await objects.delete(owner, "Orphan");
  await objects.gone(owner);
  await objects.idle();
  assert.equal((await objects.get("Secret", "child"))!.metadata.ownerReferences, undefined);
  await objects.server.stop();
});

test("a circle of foreground deletions comes to its end", async () => {
  const objects = await start();
  const a = await objects.create("ConfigMap", "a");
  const b = await objects.create("ConfigMap", "b", [refTo(a, true)]);
  await objects.setRefs(a, [refTo(b, true)]);
  await objects.idle();
  await objects.delete(a, "Foreground");
  await objects.gone(a);
  await objects.gone(b);
  await objects.server.stop();
});

test("an owner that never was ends its dependent; a wrong reference ends nothing else", async () => {
  const objects = await start();
  const owner = await objects.create("ConfigMap", "owner");
  const good = await objects.create("Secret", "good", [refTo(owner)]);
  const wrongName = { ...refTo(owner), name: "other" };
  const bad = await objects.create("Secret", "bad", [wrongName]);
  const never = { apiVersion: "v1", kind: "ConfigMap", name: "never", uid: "no-such-uid" };
  const lost = await objects.create("Secret", "lost", [never]);
  await objects.gone(lost);
  await objects.gone(bad);
  await objects.idle();
  assert.notEqual(await objects.get("Secret", good.metadata.name!), undefined);
  await objects.server.stop();
});

test("scopes: a cluster-scoped owner is good everywhere, one in a namespace not outside of it", async () => {
  const objects = await start();
  const role = await objects.create("ClusterRole", "owner");
  const child = await objects.create("ConfigMap", "child", [refTo(role)]);
  const inNamespace = await objects.create("ConfigMap", "elsewhere");
  const outside = await objects.create("ClusterRole", "outside", [refTo(inNamespace)]);
  const unknown = { apiVersion: "example.org/v1", kind: "Widget", name: "w", uid: "w" };
  await objects.create("ConfigMap", "unknown", [unknown]);
  await objects.create("ConfigMap", "mixed", [unknown, refTo(inNamespace)]);
  await objects.idle();
  assert.notEqual(await objects.get("ConfigMap", "child"), undefined);
  await objects.delete(inNamespace, "Background");
  await objects.delete(role, "Background");
  await objects.gone(child);
  await objects.idle();
  // Neither an invalid reference nor an unknown kind is a reason to delete.
  assert.notEqual(await objects.get("ClusterRole", outside.metadata.name!), undefined);
  assert.notEqual(await objects.get("ConfigMap", "unknown"), undefined);
  assert.notEqual(await objects.get("ConfigMap", "mixed"), undefined);
  await objects.server.stop();
});

test("an owner that no informer shows is looked up by all that a reference says", async () => {
  const objects = await start();
  const { world } = objects.server;
  const kind = { group: "", version: "v1", kind: "Endpoints" };
  world.addUnwatched(plainResource(kind, "endpoints", true));
  const endpoints = { group: "", version: "v1", resource: "endpoints" };
  const object = { apiVersion: "v1", kind: "Endpoints", metadata: { name: "e" } };
  const { client } = objects.server.runtime;
  const owner = await objects.drive(client.create(endpoints, NAMESPACE, object));
  const bad = await objects.create("Secret", "bad", [{ ...refTo(owner), name: "other" }]);
  await objects.create("Secret", "good", [refTo(owner)]);
  await objects.gone(bad);
  await objects.idle();
  assert.notEqual(await objects.get("Secret", "good"), undefined);
  await objects.server.stop();
});

/** The objects of the test in the store, as the model describes them. */
async function stored(objects: Objects): Promise<string[]> {
  const lines: string[] = [];
  for (const [kind, ref] of Object.entries(KINDS)) {
    const namespace = kind === "ClusterRole" ? "" : NAMESPACE;
    const list = await objects.drive(objects.server.runtime.client.list(ref, namespace, 0));
    for (const item of list.items) {
      const { name = "", ownerReferences = [], deletionTimestamp } = item.object().metadata;
      if (!name.startsWith("o-")) continue;
      const owners = ownerReferences.map((one) => one.name).sort();
      const isDeleting = deletionTimestamp !== undefined;
      lines.push(`${kind}/${name} ${isDeleting ? "is being deleted" : `<- ${owners}`}`);
    }
  }
  return lines.sort();
}

async function runHistory(seed: number, operations: number): Promise<void> {
  const objects = await start();
  const random = new SeededRandom(BigInt(seed));
  const model = new GcModel();
  const known = new Map<string, KubeObject>();
  const pick = (): KubeObject | undefined => {
    const alive = model.alive.filter((uid) => !model.isDeleting(uid));
    return alive.length === 0 ? undefined : known.get(alive[random.below(alive.length)]);
  };
  const reach = async (): Promise<void> => {
    await until(objects.server.clock, `the model's state, seed ${seed}`, async () => {
      const state = await stored(objects);
      return JSON.stringify(state) === JSON.stringify(model.state);
    }).catch(async () => {
      assert.deepEqual(await stored(objects), model.state, `seed ${seed}`);
    });
  };
  const randomRefs = (kind: string, self: string): OwnerReference[] => {
    const refs = new Map<string, OwnerReference>();
    for (let i = random.below(3); i > 0; i--) {
      const owner = pick();
      if (owner === undefined || owner.metadata.uid === self) continue;
      if (kind === "ClusterRole" && owner.kind !== "ClusterRole") continue;
      refs.set(owner.metadata.uid!, refTo(owner, random.below(2) === 0));
    }
    if (random.below(12) === 0) {
      const name = `o-never-${random.uint32()}`;
      refs.set(name, { apiVersion: "v1", kind: "ClusterRole", name, uid: name });
      refs.set(name, { ...refs.get(name)!, apiVersion: "rbac.authorization.k8s.io/v1" });
    }
    return [...refs.values()];
  };
  for (let step = 0; step < operations; step++) {
    const kind = Object.keys(KINDS)[random.below(3)];
    const choice = random.below(10);
    const object = pick();
    if (choice < 5 || object === undefined) {
      const refs = randomRefs(kind, "");
      const isHeld = random.below(16) === 0;
      const name = `o-${step}`;
      const made = await objects.create(kind, name, refs, isHeld ? ["example.org/hold"] : []);
      known.set(made.metadata.uid!, made);
      model.add(made.metadata.uid!, `${kind}/${name}`, refs, isHeld);
    } else if (choice < 7) {
      // What the collector is about to change must not be changed at the same time.
      await reach();
      if (!model.has(object.metadata.uid!)) continue;
      const refs = randomRefs(object.kind, object.metadata.uid!);
      await objects.setRefs(object, refs);
      model.setRefs(object.metadata.uid!, refs);
    } else if (choice < 9) {
      const uid = object.metadata.uid!;
      // A dependent that is held holds up foreground deletions, which the model does not know.
      const hasHeld = model.alive.some((one) => model.isHeld(one));
      const policies = ["Background", "Orphan", "Foreground"] as const;
      const drawn = policies[random.below(hasHeld ? 2 : 3)];
      const policy = model.isHeld(uid) ? "Background" : drawn;
      if (policy === "Orphan" || random.below(2) === 0) {
        await reach();
        // Informers have to see a new reference before its owner is orphaned, as in Kubernetes.
        await objects.idle();
      }
      await objects.delete(object, policy);
      model.delete(uid, policy);
      if (policy !== "Background") await reach();
    } else {
      await reach();
      const held = model.alive.find((uid) => model.isHeld(uid));
      if (held === undefined) continue;
      const finalizers: string[] = [];
      await objects.change(known.get(held)!, (it) => ({
        ...it,
        metadata: { ...it.metadata, finalizers },
      }));
      model.release(held);
    }
  }
  await reach();
  await objects.idle();
  assert.deepEqual(await stored(objects), model.state, `seed ${seed}`);
  await objects.server.stop();
}

const SEEDS = Number(process.env["QUORATE_GC_SEEDS"] ?? 6);

test(`random histories leave what a simple model leaves (${SEEDS} seeds)`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) await runHistory(seed, 30);
});
