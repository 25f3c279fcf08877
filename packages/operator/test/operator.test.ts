/** The loops around the plans: queue, watches, lease, backups, restores and users. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import {
  BackupReconciler,
  Election,
  type Key,
  type KubeObject,
  type Members,
  Operator,
  OperatorMetrics,
  type Permission,
  RestoreReconciler,
  UserReconciler,
} from "../index.ts";
import type { QuorateBackup, QuorateCluster } from "../src/base/kinds.ts";
import { restorePod } from "../src/cluster/pods-beside.ts";
import { Cloud } from "./support/cloud.ts";
import { MemoryKube } from "./support/memory-kube.ts";

interface PodSpec {
  readonly activeDeadlineSeconds?: number;
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly env: readonly { readonly name: string; readonly value: string }[];
  }[];
}

const KEY: Key = { namespace: "ns", name: "x" };

class Fixture {
  readonly clock = new ManualClock();
  readonly kube = new MemoryKube(() => this.clock.wallMs());
  readonly metrics = new OperatorMetrics();
  readonly random = new SeededRandom(5n);
  readonly logger = silentLogger;

  object(kind: string, name: string, spec: object, status: object = {}): void {
    const metadata = { name, namespace: "ns", uid: `uid-of-${name}`, generation: 1 };
    this.kube.put({ apiVersion: "quorate.dev/v1alpha1", kind, metadata, spec, status });
  }

  cluster(): void {
    const spec = { size: 1, image: "quorate:1", storage: { size: "1Gi", onDelete: "Keep" } };
    const memberList = [{ name: "db-0", id: "1", role: "leader", ready: true, version: "" }];
    this.object("QuorateCluster", "db", spec, { clusterID: "c1", memberList });
  }

  /** The Ready condition, such as "True Saved". */
  ready(kind: "QuorateBackup" | "QuorateRestore" | "QuorateUser"): string {
    const found = this.kube.find<KubeObject<unknown, { conditions: { status: string }[] }>>(
      kind,
      "x",
    );
    const [{ status, reason }] = found!.status!.conditions as { status: string; reason: string }[];
    return `${status} ${reason}`;
  }

  pod(name: string): KubeObject {
    return this.kube.find("Pod", name)!;
  }

  endPod(name: string, phase: string): void {
    this.kube.put({ ...this.pod(name), status: { phase } });
  }

  finishDeletion(name: string): void {
    assert.notEqual(this.pod(name).metadata.deletionTimestamp, undefined);
    this.kube.drop(this.pod(name));
  }

  /** Lets what waits for promises go on. */
  async settle(): Promise<void> {
    for (let i = 0; i < 50; i++) await Promise.resolve();
  }
}

test("an object is worked on when it changes, again after a pause, and once at a time", async () => {
  const world = new Fixture();
  const done: string[] = [];
  let atOnce = 0;
  let release = (): void => {};
  const reconciler = {
    async reconcile({ name }: Key): Promise<number | undefined> {
      done.push(name);
      atOnce++;
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      atOnce--;
      if (name === "bad") throw new Error("refused");
      return 5000;
    },
  };
  const operator = new Operator("", { QuorateUser: reconciler }, world);
  operator.start();
  await world.settle();
  world.object("QuorateUser", "good", {});
  world.object("QuorateUser", "good", { changed: true });
  await world.settle();
  assert.deepEqual([done, atOnce], [["good"], 1]);
  release();
  await world.settle();
  assert.deepEqual(done, ["good", "good"], "it changed meanwhile");
  release();
  await world.settle();
  world.clock.advance(4999);
  await world.settle();
  assert.equal(done.length, 2);
  world.clock.advance(1);
  await world.settle();
  assert.equal(done.length, 3);
  release();
  await world.settle();
  world.object("QuorateUser", "bad", {});
  await world.settle();
  release();
  await world.settle();
  assert.equal(world.metrics.errors.with("QuorateUser").value, 1);
  world.clock.advance(500);
  await world.settle();
  assert.equal(done.filter((name) => name === "bad").length, 2, "a failure is tried again");
  const stopped = operator.stop();
  release();
  await stopped;
});

test("a watch that breaks is opened again, and a list finds what it missed", async () => {
  const world = new Fixture();
  const done: string[] = [];
  const reconciler = {
    async reconcile({ name }: Key): Promise<undefined> {
      done.push(name);
    },
  };
  const operator = new Operator("ns", { QuorateUser: reconciler }, world);
  operator.start();
  await world.settle();
  for (const watcher of [...world.kube.watchers]) {
    world.kube.watchers.delete(watcher);
    watcher.lost(new Error("gone"));
  }
  world.object("QuorateUser", "missed", {});
  await world.settle();
  assert.equal(done.length, 0);
  world.clock.advance(1000);
  world.object("QuorateUser", "seen", {});
  await world.settle();
  assert.deepEqual(done, ["seen"]);
  world.clock.advance(60_000);
  await world.settle();
  assert.ok(done.includes("missed"));
  await operator.stop();
});

test("one of two operators leads; the other one follows when it stops, or is away", async () => {
  const world = new Fixture();
  const said: string[] = [];
  const elections = ["a", "b", "c"].map((name) => {
    const started = (): number => said.push(`${name} leads`);
    const lost = (): number => said.push(`${name} lost`);
    return new Election("ns", name, started, lost, world);
  });
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      world.clock.advance(1000);
      await world.settle();
    }
  };
  const [a, b, c] = elections;
  a.start();
  await pass(5);
  b.start();
  await pass(60);
  assert.deepEqual(said, ["a leads"]);
  await a.stop();
  await pass(3);
  assert.deepEqual(said, ["a leads", "b leads"]);
  c.start();
  await pass(3);
  let isCutOff = true;
  // The API server does not answer b any more.
  const get = world.kube.get.bind(world.kube);
  let turn = 0;
  world.kube.get = async (kind, namespace, name) => {
    if (isCutOff && turn++ % 2 === 0) throw new Error("no answer");
    return get(kind, namespace, name);
  };
  await pass(1);
  isCutOff = false;
  await pass(30);
  assert.ok(!said.includes("c leads"), "b has renewed in time");
  await b.stop();
  await pass(3);
  assert.equal(said.at(-1), "c leads");
  world.kube.get = () => Promise.reject(new Error("no answer"));
  await pass(15);
  assert.equal(said.at(-1), "c lost");
});

test("a scheduled backup saves when it is due, keeps its word on failures, and says when", async () => {
  const world = new Fixture();
  const scheduled = { every: "1h", keep: 3 };
  world.object("QuorateBackup", "x", { cluster: "db", claim: "c", path: "p", scheduled });
  const backups = new BackupReconciler(world);
  await backups.reconcile(KEY);
  assert.equal(world.ready("QuorateBackup"), "False NoCluster");
  world.cluster();
  await backups.reconcile(KEY);
  const { args } = (world.pod("x-backup").spec as { containers: { args: string[] }[] })
    .containers[0];
  assert.deepEqual(args, ["/backup/p", "20260101T000000Z", "3"]);
  world.endPod("x-backup", "Succeeded");
  await backups.reconcile(KEY);
  assert.equal(world.ready("QuorateBackup"), "True Saved");
  world.finishDeletion("x-backup");
  assert.ok((await backups.reconcile(KEY))! > 0);
  assert.equal(world.pod("x-backup"), undefined, "not before an hour");
  world.clock.advance(3_600_000);
  await backups.reconcile(KEY);
  world.endPod("x-backup", "Failed");
  await backups.reconcile(KEY);
  assert.equal(world.ready("QuorateBackup"), "False Failed");
  assert.equal(world.pod("x-backup").metadata.deletionTimestamp, undefined, "its log stays");
  world.clock.advance(3_600_000);
  await backups.reconcile(KEY);
  world.finishDeletion("x-backup");
  await backups.reconcile(KEY);
  assert.equal(world.ready("QuorateBackup"), "True Saving");
});

test("a restore test runs when there is a backup and it is due, and says what came of it", async () => {
  const world = new Fixture();
  world.cluster();
  const scheduled = { every: "24h", keep: 3 };
  const restoreTest = { every: "1h" };
  world.object("QuorateBackup", "x", {
    cluster: "db",
    claim: "c",
    path: "p",
    scheduled,
    restoreTest,
  });
  const backups = new BackupReconciler(world);
  await backups.reconcile(KEY);
  assert.equal(world.pod("x-test"), undefined, "there is nothing to be restored yet");
  world.endPod("x-backup", "Succeeded");
  await backups.reconcile(KEY);
  world.finishDeletion("x-backup");
  assert.equal(world.ready("QuorateBackup"), "True Saved");
  const restorable = (): string => {
    const found = world.kube.find<QuorateBackup>("QuorateBackup", "x")!;
    const { status, reason, message } = found.status!.conditions!.find(
      ({ type }) => type === "Restorable",
    )!;
    return `${status} ${reason}: ${message}`;
  };
  assert.equal((world.pod("x-test").spec as PodSpec).activeDeadlineSeconds, 21_600);
  const end = (phase: string, message: string): void => {
    const containerStatuses = [{ state: { terminated: { exitCode: 0, message } } }];
    world.kube.put({ ...world.pod("x-test"), status: { phase, containerStatuses } });
  };
  end("Succeeded", "revision 7 is restored\n");
  await backups.reconcile(KEY);
  assert.equal(restorable(), "True Tested: revision 7 is restored");
  assert.equal(world.ready("QuorateBackup"), "True Saved", "the other condition stays");
  assert.equal(world.metrics.restorable.with("ns", "x").value, 1);
  world.finishDeletion("x-test");
  world.clock.advance(3_599_000);
  await backups.reconcile(KEY);
  assert.equal(world.pod("x-test"), undefined, "not before an hour");
  world.clock.advance(1000);
  await backups.reconcile(KEY);
  end("Failed", "other keys");
  await backups.reconcile(KEY);
  assert.equal(restorable(), "False TestFailed: other keys");
  assert.equal(world.metrics.restorable.with("ns", "x").value, 0);
  assert.equal(world.pod("x-test").metadata.deletionTimestamp, undefined, "its log stays");
  world.clock.advance(3_600_000);
  await backups.reconcile(KEY);
  world.finishDeletion("x-test");
  await backups.reconcile(KEY);
  assert.notEqual(world.pod("x-test"), undefined, "and it is tried again");
});

test("a continuous backup is a pod that stays", async () => {
  const world = new Fixture();
  world.cluster();
  const continuous = { baseInterval: "24h", retain: "168h" };
  world.object("QuorateBackup", "x", { cluster: "db", claim: "c", path: "p", continuous });
  const backups = new BackupReconciler(world);
  await backups.reconcile(KEY);
  assert.equal(world.ready("QuorateBackup"), "False Starting");
  assert.equal((world.pod("x-backup").spec as { restartPolicy: string }).restartPolicy, "Always");
  const conditions = [{ type: "Ready", status: "True" }];
  world.kube.put({ ...world.pod("x-backup"), status: { phase: "Running", conditions } });
  await backups.reconcile(KEY);
  assert.equal(world.ready("QuorateBackup"), "True Recording");
  const containerStatuses = [
    { state: {}, lastState: { terminated: { exitCode: 1, message: "one\nError: no space\n" } } },
  ];
  world.kube.put({ ...world.pod("x-backup"), status: { phase: "Running", containerStatuses } });
  await backups.reconcile(KEY);
  assert.equal(world.ready("QuorateBackup"), "False Failing");
  assert.match(
    world.kube.find<QuorateBackup>("QuorateBackup", "x")!.status!.conditions![0].message,
    /x-backup ended: Error: no space$/,
  );
});

test("a continuous backup begins another directory when the keys went back", async () => {
  const world = new Fixture();
  world.cluster();
  const mirror = { url: "s3://b/p/", secret: "s3" };
  const continuous = { baseInterval: "24h", retain: "168h", mirror };
  const restoreTest = { every: "1h" };
  const spec = { cluster: "db", claim: "c", path: "p", continuous, restoreTest };
  world.object("QuorateBackup", "x", spec);
  const backups = new BackupReconciler(world);
  const place = (): [dir: string, url: string | undefined] => {
    const [{ args, env }] = (world.pod("x-backup").spec as PodSpec).containers;
    return [args[0], env.find(({ name }) => name === "MIRROR")?.value];
  };
  await backups.reconcile(KEY);
  assert.deepEqual(place(), ["/backup/p", "s3://b/p"]);
  await world.kube.patch("QuorateCluster", "ns", "db", { status: { history: 2 } }, "status");
  for (let i = 0; i < 2; i++) await backups.reconcile(KEY);
  world.finishDeletion("x-backup");
  for (let i = 0; i < 2; i++) await backups.reconcile(KEY);
  assert.deepEqual(place(), ["/backup/p-2", "s3://b/p-2"]);
  const { status } = world.kube.find<QuorateBackup>("QuorateBackup", "x")!;
  assert.deepEqual([status?.directory, status?.history], ["p-2", 2]);
  // A new one, of a cluster that went back before, begins in its own.
  world.object("QuorateBackup", "y", { ...spec, path: "q" });
  await backups.reconcile({ namespace: "ns", name: "y" });
  const other = world.pod("y-backup").spec as PodSpec;
  assert.equal(other.containers[0].args[0], "/backup/q");
});

test("a mirror's secret is mounted, and its place given to the pod of a backup and of a restore", async () => {
  const world = new Fixture();
  world.cluster();
  const mirror = { url: "s3://b/p", endpoint: "https://s3.example", secret: "s3" };
  const continuous = { baseInterval: "24h", retain: "168h", mirror };
  world.object("QuorateBackup", "x", { cluster: "db", claim: "c", path: "p", continuous });
  await new BackupReconciler(world).reconcile(KEY);
  const cluster = await world.kube.get<QuorateCluster>("QuorateCluster", "ns", "db");
  const order = { claim: "c", path: "p", id: "1", bumpRevision: 0, mirror };
  for (const pod of [
    world.pod("x-backup"),
    restorePod(cluster!, { name: "db-0", zone: "a" }, order),
  ]) {
    const { volumes, containers } = pod.spec as {
      volumes: { name: string; secret?: { secretName: string } }[];
      containers: { env: { name: string; value: string }[]; command: string[] }[];
    };
    assert.equal(volumes.find(({ name }) => name === "mirror")?.secret?.secretName, "s3");
    const [{ env, command }] = containers as [(typeof containers)[0]];
    const variables = new Map(env.map(({ name, value }) => [name, value]));
    assert.equal(variables.get("MIRROR"), "s3://b/p");
    assert.equal(variables.get("AWS_ENDPOINT_URL"), "https://s3.example");
    assert.equal(variables.get("AWS_SHARED_CREDENTIALS_FILE"), "/mirror/credentials");
    assert.match(command[2]!, /"\$MIRROR"/);
  }
});

test("a restore orders, waits for its turn, and is given up when it is deleted", async () => {
  const world = new Fixture();
  const from = { claim: "c", path: "p" };
  world.object("QuorateRestore", "x", { cluster: "db", from, bumpRevision: 5 });
  const restores = new RestoreReconciler(world);
  await restores.reconcile(KEY);
  assert.equal(world.ready("QuorateRestore"), "False NoCluster");
  world.cluster();
  const orderOf = (): string | undefined =>
    world.kube.find("QuorateCluster", "db")!.metadata.annotations?.["quorate.dev/restore"];
  const other = JSON.stringify({ ...from, id: "another", bumpRevision: 5 });
  const annotate = (text: string | null) =>
    world.kube.patch(
      "QuorateCluster",
      "ns",
      "db",
      { metadata: { annotations: { "quorate.dev/restore": text } } },
      "",
    );
  await annotate(other);
  await restores.reconcile(KEY);
  assert.equal(world.ready("QuorateRestore"), "False Waiting");
  assert.equal(orderOf(), other);
  await annotate(null);
  await restores.reconcile(KEY);
  assert.deepEqual(JSON.parse(orderOf()!), { ...from, id: "uid-of-x", bumpRevision: 5 });
  const found = world.kube.find("QuorateRestore", "x")!;
  assert.deepEqual(found.metadata.finalizers, ["quorate.dev/restore"]);
  const deletionTimestamp = new Date(world.clock.wallMs()).toISOString();
  world.kube.put({ ...found, metadata: { ...found.metadata, deletionTimestamp } });
  await restores.reconcile(KEY);
  assert.equal(orderOf(), undefined);
  assert.equal(world.kube.find("QuorateRestore", "x")!.metadata.finalizers, undefined);
});

test("a restore into a new cluster makes it; one that is there is left alone", async () => {
  const world = new Fixture();
  const create = { size: 1, image: "quorate:1", storage: { size: "1Gi", onDelete: "Keep" } };
  const spec = { cluster: "db", create, from: { claim: "c", path: "p" }, bumpRevision: 0 };
  world.object("QuorateRestore", "x", spec);
  const restores = new RestoreReconciler(world);
  await restores.reconcile(KEY);
  assert.deepEqual(world.kube.find("QuorateCluster", "db")!.spec, create);
  await restores.reconcile(KEY);
  assert.equal(world.ready("QuorateRestore"), "False Restoring");
  await world.kube.patch(
    "QuorateCluster",
    "ns",
    "db",
    { status: { restored: "uid-of-x" } },
    "status",
  );
  assert.equal(await restores.reconcile(KEY), undefined);
  assert.equal(world.ready("QuorateRestore"), "True Restored");
  world.kube.drop(world.kube.find("QuorateCluster", "db")!);
  world.cluster();
  world.object("QuorateRestore", "y", spec);
  await restores.reconcile({ namespace: "ns", name: "y" });
  const late = world.kube.find<KubeObject<unknown, { conditions: { reason: string }[] }>>(
    "QuorateRestore",
    "y",
  );
  assert.equal(late!.status!.conditions[0].reason, "ClusterExists");
});

test("a user is set from its secret, and again only when that changes", async () => {
  const world = new Fixture();
  world.cluster();
  const kept: [string, string | undefined, readonly Permission[]][] = [];
  const dropped: string[] = [];
  const cloud = new Cloud(world.kube, world.random, () => world.clock.wallMs());
  const members: Members = {
    ...cloud.members,
    async keepUser(_target, name, password, permissions) {
      kept.push([name, password, permissions]);
    },
    async dropUser(_target, name) {
      dropped.push(name);
    },
  };
  const users = new UserReconciler({ ...world, kube: world.kube, clock: world.clock, members });
  const secret = (name: string, data: Record<string, string>): void =>
    world.kube.put({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: "ns" },
      data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, btoa(text)])),
    });
  secret("db-root-tls", { "tls.crt": "c", "tls.key": "k", "ca.crt": "a" });
  const permissions = [{ access: "read", key: "app/", prefix: true }];
  const passwordSecret = { name: "s", key: "password" };
  world.object("QuorateUser", "x", { cluster: "db", passwordSecret, permissions });
  await users.reconcile(KEY);
  assert.equal(world.ready("QuorateUser"), "False NoPassword");
  secret("s", { password: "hers" });
  await users.reconcile(KEY);
  await users.reconcile(KEY);
  secret("s", { password: "new" });
  await users.reconcile(KEY);
  const wanted = [{ access: "read", key: "app/", isPrefix: true }];
  assert.deepEqual(kept, [
    ["x", "hers", wanted],
    ["x", undefined, wanted],
    ["x", "new", wanted],
  ]);
  const found = world.kube.find("QuorateUser", "x")!;
  assert.deepEqual(found.metadata.finalizers, ["quorate.dev/user"]);
  const deletionTimestamp = new Date(world.clock.wallMs()).toISOString();
  world.kube.put({ ...found, metadata: { ...found.metadata, deletionTimestamp } });
  await users.reconcile(KEY);
  assert.deepEqual(dropped, ["x"]);
  assert.equal(world.kube.find("QuorateUser", "x")!.metadata.finalizers, undefined);
});
