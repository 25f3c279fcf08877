/**
 * A walk through the life of a cluster that the operator keeps, on an API server of ours or on
 * Kubernetes', with pods as processes and a load whose history is judged. Runs in namespaces of its
 * own:
 *
 *     ./dev soak operator            the whole walk, and the table of what each step cost
 *     ./dev soak operator --kill     the operator is killed in each step, at a moment of a seed
 *     node packages/kube-apiserver/test/operator/walk.ts DIR short|whole ours|kubernetes [SEED]
 *
 * Members, their certificates, the operator and the load are real; only what runs pods is the
 * test's (kubelet.ts). The operator is a pod with no more rights than its manifest gives it.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "@quorate/client";
import { SeededRandom } from "@quorate/host";
import { fromLatin1, KeyValue, KVService } from "@quorate/proto";
import { parseAllDocuments } from "yaml";
import { judgeFile } from "../../../../test/robustness/judging.ts";
import { END_KEY, FIRST_KEY } from "../../../../test/robustness/keys.ts";
import { type Line, Recorder, readHistory } from "../../../../test/robustness/recorder.ts";
import { liveAsClient, Shared } from "../../../../test/robustness/workload.ts";
import { TestClient } from "../../../../test/support/client.ts";
import { findProgram } from "../../../../test/support/executables.ts";
import {
  ObjectStoreServer,
  STORE_CREDENTIALS,
  STORE_PROGRAM,
} from "../../../../test/support/object-store.ts";
import { BRIDGE_ADDRESS, makeBridge } from "../../../../test/support/sandbox.ts";
import { acrossCut, beforeCut, type Cut } from "./eras.ts";
import { Kubelet } from "./kubelet.ts";
import { startKubernetes, startOurs, type WalkApi } from "./kubernetes.ts";

const CLUSTERS = "/apis/quorate.dev/v1alpha1/namespaces/apps/quorateclusters";
const GROUP = "/apis/quorate.dev/v1alpha1/namespaces/apps";
const MEMBERS = { "quorate.dev/cluster": "db", "quorate.dev/role": "member" };
/** Clients that write and read all the time. */
const CLIENTS = 3;
const OPERATOR_FLAGS = [
  "--kubeconfig=/kube/config",
  "--lease-namespace=quorate-system",
  // Files of secrets are there at once, and members read them every few seconds.
  "--settle=15s",
];
const STEP_LIMIT_MS = 240_000;
const MERGE = "application/merge-patch+json";

const [dir = "", length = "whole", which = "ours", killSeed] = process.argv.slice(2);
/** When the operator is killed in each step; undefined where it lives. */
const killing = killSeed === undefined ? undefined : new SeededRandom(BigInt(killSeed));
/** From 0.1 to 8 s, half of them within 0.9 s: steps are of very different length. */
const killAfterMs = (random: SeededRandom): number => 100 * 80 ** random.unit();
const startedAt = performance.now();
const seconds = (sinceMs: number): string => ((performance.now() - sinceMs) / 1000).toFixed(1);
const say = (text: string): void => console.log(`${seconds(startedAt)} s: ${text}`);

/** A step of the walk, and what it cost. */
interface Row {
  readonly what: string;
  readonly fromUs: number;
  readonly untilUs: number;
  readonly history: string;
  /** When the operator was killed; undefined where it lived. */
  readonly killedMs: number | undefined;
}
const rows: Row[] = [];

makeBridge();
mkdirSync(dir, { recursive: true });
const ACCOUNT = "system:serviceaccount:quorate-system:quorate-operator";
const api =
  which === "kubernetes"
    ? await startKubernetes(join(dir, "api"), BRIDGE_ADDRESS, ACCOUNT)
    : await startOurs(join(dir, "api"), BRIDGE_ADDRESS);

async function call(path: string, method = "GET", body?: object, contentType?: string) {
  const sent = { method, ...(body && { body }), ...(contentType && { contentType }) };
  const answer = await api.request(path, sent);
  if (answer.status >= 300 && answer.status !== 404)
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer;
}

/** Creates the objects of the operator's manifest, but for what Kubernetes would make pods of. */
async function install(server: WalkApi): Promise<void> {
  const file = resolve(import.meta.dirname, "../../../../deploy/kubernetes/operator.yaml");
  const plurals: Readonly<Record<string, string>> = {
    Namespace: "/api/v1/namespaces",
    ServiceAccount: "/api/v1/namespaces/quorate-system/serviceaccounts",
    CustomResourceDefinition: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ClusterRole: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ClusterRoleBinding: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    Role: "/apis/rbac.authorization.k8s.io/v1/namespaces/quorate-system/roles",
    RoleBinding: "/apis/rbac.authorization.k8s.io/v1/namespaces/quorate-system/rolebindings",
    Deployment: "/apis/apps/v1/namespaces/quorate-system/deployments",
    Service: "/api/v1/namespaces/quorate-system/services",
  };
  let template: { spec: { containers: { args: string[] }[] } } | undefined;
  for (const document of parseAllDocuments(readFileSync(file, "utf8"))) {
    const object = document.toJS();
    if (object.kind === "Deployment") template = object.spec.template;
    await call(plurals[object.kind], "POST", object);
  }
  // In place of a service account's token: a certificate, or a token, of the same user.
  const kubeconfig = await server.kubeconfigFor(ACCOUNT, ["system:serviceaccounts"]);
  await call("/api/v1/namespaces/quorate-system/secrets", "POST", {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "kubeconfig" },
    data: { config: Buffer.from(kubeconfig).toString("base64") },
  });
  const [container] = template!.spec.containers;
  await call("/api/v1/namespaces/quorate-system/pods", "POST", {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "operator", namespace: "quorate-system" },
    spec: {
      restartPolicy: "Always",
      containers: [
        {
          name: "operator",
          image: "quorate:1",
          command: ["/opt/quorate/bin/quorate"],
          args: [...container.args, ...OPERATOR_FLAGS],
          volumeMounts: [{ name: "kube", mountPath: "/kube" }],
        },
      ],
      volumes: [{ name: "kube", secret: { secretName: "kubeconfig" } }],
    },
  });
}

await call("/api/v1/namespaces", "POST", { metadata: { name: "apps" } });
await call("/apis/storage.k8s.io/v1/storageclasses", "POST", {
  metadata: { name: "disks" },
  provisioner: "example.com/directories",
  allowVolumeExpansion: true,
});
await install(api);
const kubelet = new Kubelet(api, join(dir, "pods"));

type Condition = {
  type: string;
  status: string;
  reason: string;
  message: string;
  observedGeneration: number;
};
type Status = {
  conditions?: Condition[];
  readyMembers?: number;
  clusterID?: string;
  restored?: string;
  leader?: string;
  memberList?: { name: string; id: string; role: string }[];
};
type Claim = { readonly status: { readonly capacity: { readonly storage: string } } };
const change = (patch: object) => call(`${CLUSTERS}/db`, "PATCH", patch, MERGE);

async function statusOf(name = "db"): Promise<Status & { generation: number }> {
  const { body } = await call(`${CLUSTERS}/${name}`);
  return { ...(body.status as Status), generation: body.metadata.generation };
}

async function wait(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + STEP_LIMIT_MS;
  while (!(await holds())) {
    if (performance.now() > endMs)
      throw new Error(`not in time: ${what}\n${JSON.stringify(await statusOf(), undefined, 1)}`);
    await delay(200);
  }
}

/** The operator says that all is as wanted, with so many members. */
async function settled(size: number, name = "db"): Promise<Status> {
  let status = await statusOf(name);
  await wait(`${size} members of ${name}`, async () => {
    status = await statusOf(name);
    const ready = status.conditions?.find(({ type }) => type === "Ready");
    return (
      ready?.status === "True" &&
      ready.observedGeneration === (status as { generation?: number }).generation &&
      status.readyMembers === size &&
      status.memberList?.length === size
    );
  });
  return status;
}

const secretText = async (name: string, key: string): Promise<string> => {
  const { body } = await call(`/api/v1/namespaces/apps/secrets/${name}`);
  return Buffer.from(body.data[key], "base64").toString();
};

/** Members as the load finds them: whoever is ready at the moment. */
const identity: { ca?: string; cert?: string; key?: string } = {};
async function readIdentity(): Promise<void> {
  identity.ca = await secretText("db-client-tls", "ca.crt");
  identity.cert = await secretText("db-client-tls", "tls.crt");
  identity.key = await secretText("db-client-tls", "tls.key");
}
/** Which members clients may turn to: while a cluster goes back, not to those of both eras. */
let isOpen: (name: string) => boolean = () => true;
const slot = (index: number) => ({
  name: `slot${index}`,
  test: {
    get clientAddress(): string {
      const ready = [...kubelet.addressesOf(MEMBERS)].filter(([name]) => isOpen(name));
      return `${ready[index % Math.max(1, ready.length)]?.[1] ?? "127.0.0.1"}:2379`;
    },
  },
});
const targets = { nodes: [slot(0), slot(1), slot(2)], cluster: { identity } };

/** A load whose history is judged when it ends. */
class Load {
  readonly path: string;
  readonly recorder: Recorder;
  readonly #shared: Shared;
  readonly #lives: Promise<unknown>;
  #cut: Cut | undefined;

  private constructor(path: string, base: number, seed: bigint) {
    this.path = path;
    this.recorder = new Recorder(path, base);
    const pace = { thinkMs: 25, callLimitMs: 2500 };
    this.#shared = new Shared(targets, this.recorder, pace, base, undefined);
    const random = new SeededRandom(seed);
    this.#lives = Promise.all(
      Array.from({ length: CLIENTS }, (_, i) =>
        liveAsClient(`c${i}`, this.#shared, random.fork(`client ${i}`)),
      ),
    );
  }

  static async begin(name: string, seed: bigint): Promise<Load> {
    await readIdentity();
    let base = 0;
    await wait("the keys are gone", async () => {
      const client = new TestClient(targets.nodes[0].test.clientAddress, identity);
      try {
        const { DeleteRange, Range } = KVService.methods;
        const range = { key: fromLatin1(FIRST_KEY), rangeEnd: fromLatin1(END_KEY) };
        await client.call(DeleteRange, range, 5000);
        base = (await client.call(Range, range, 5000)).header!.revision;
        return true;
      } catch {
        return false;
      } finally {
        client.close();
      }
    });
    return new Load(join(dir, `${name}.jsonl`), base, seed);
  }

  /** A step under the load, with a little of quiet before and after it. */
  async step(what: string, task: () => Promise<unknown>): Promise<void> {
    await delay(1000);
    const fromUs = this.recorder.now();
    const killMs = killing && killAfterMs(killing);
    let killedMs: number | undefined;
    const kill = (): void => {
      kubelet.kill("operator");
      killedMs = killMs;
    };
    const timer = killMs === undefined ? undefined : setTimeout(kill, killMs);
    await task();
    clearTimeout(timer);
    await delay(500);
    const untilUs = this.recorder.now();
    rows.push({ what, fromUs, untilUs, history: this.path, killedMs });
    say(`${what}: ${((untilUs - fromUs) / 1e6).toFixed(1)} s`);
  }

  /**
   * Notes that the cluster has gone back to an older state of its keys, and lets clients turn to
   * all members again. Until then they must not reach any that has that state.
   * @param bump what was added to the revision
   */
  async goneBack(bump: number): Promise<void> {
    const shared = this.#shared;
    const revision = await revisionNow();
    shared.lastMods.clear();
    shared.lastRevision = revision;
    this.#cut = { atUs: this.recorder.now(), revision: revision - bump, bump };
    isOpen = () => true;
  }

  /** Ends it, and judges. */
  async end(): Promise<void> {
    this.#shared.stopped = true;
    await this.#lives;
    this.recorder.close();
    if (this.#cut === undefined) return judged("history", this.path);
    const lines = readHistory(this.path);
    const across = acrossCut(lines, this.#cut);
    say(`${across.lost} acknowledged writes are not in the state that the cluster went back to`);
    await judged("history before", written(`${this.path}.before`, beforeCut(lines, this.#cut)));
    await judged("history across", written(`${this.path}.across`, across.lines));
  }
}

function written(path: string, lines: readonly Line[]): string {
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return path;
}

async function judged(what: string, path: string): Promise<void> {
  const { violation, decided, operations, unknown, revisions } = await judgeFile(path);
  const verdict = decided ? "linearizable" : "no violation found, not every order was tried";
  say(`${what}: ${operations} operations, ${unknown} unknown, ${revisions} revisions: ${verdict}`);
  assert.equal(violation, undefined);
}

/** The revision by a quorum, once there is one, whoever is open to the load. */
async function revisionNow(): Promise<number> {
  let revision = 0;
  await wait("a quorum responds", async () => {
    const [address] = kubelet.addressesOf(MEMBERS).values();
    if (address === undefined) return false;
    const client = new TestClient(`${address}:2379`, identity);
    try {
      const key = fromLatin1(FIRST_KEY);
      revision = (await client.call(KVService.methods.Range, { key }, 2000)).header!.revision;
      return true;
    } catch {
      return false;
    } finally {
      client.close();
    }
  });
  return revision;
}

/** The longest time without an acknowledged write while a step was under way, in milliseconds. */
function longestGapMs({ fromUs, untilUs, history }: Row): number {
  const isWrite = (line: Line): boolean =>
    line.t === "op" && line.request.kind !== "range" && line.outcome.kind === "answered";
  const times = readHistory(history)
    .flatMap((line) => (isWrite(line) && line.t === "op" ? [line.returnedAt] : []))
    .filter((at) => at >= fromUs && at <= untilUs)
    .sort((a, b) => a - b);
  const marks = [fromUs, ...times, untilUs];
  return Math.max(...marks.slice(1).map((at, i) => at - marks[i])) / 1000;
}

const spec = {
  size: 3,
  image: "quorate:1",
  storage: { size: "1Gi", onDelete: "Delete", storageClassName: "disks" },
  replaceAfterSeconds: 60,
};
const cluster = (name: string, more: object = {}) => ({
  apiVersion: "quorate.dev/v1alpha1",
  kind: "QuorateCluster",
  metadata: { name },
  spec: { ...spec, ...more },
});

/** A place in an object store on this machine; undefined where there is none. */
async function objectStore(): Promise<object | undefined> {
  if (findProgram(STORE_PROGRAM) === undefined) {
    say(`${STORE_PROGRAM} is not installed: backups have a directory, and no object store`);
    return undefined;
  }
  const store = new ObjectStoreServer(join(dir, "store"), `${BRIDGE_ADDRESS}:9000`);
  await store.start();
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: key } = STORE_CREDENTIALS;
  const file = `[default]\naws_access_key_id = ${id}\naws_secret_access_key = ${key}\n`;
  await call("/api/v1/namespaces/apps/secrets", "POST", {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "store" },
    data: { credentials: Buffer.from(file).toString("base64") },
  });
  return { url: "s3://backups/db", endpoint: store.endpoint, secret: "store" };
}

/** A member that does not lead. */
async function follower(): Promise<{ name: string; id: string }> {
  const { memberList = [] } = await statusOf();
  return memberList.find(({ role }) => role === "voter")!;
}

async function ids(): Promise<string> {
  const { memberList = [] } = await statusOf();
  return memberList
    .map(({ id }) => id)
    .sort()
    .join();
}

const resize = async (size: number): Promise<void> => {
  await change({ spec: { size } });
  await settled(size);
};

/** Ends a pod, and waits until it is ready again: the operator may look too late to see it gone. */
const endPod = async (name: string, end: () => unknown): Promise<void> => {
  const before = kubelet.readyPid(name);
  await end();
  await wait("it is ready again", async () => {
    const pid = kubelet.readyPid(name);
    return pid !== undefined && pid !== before;
  });
};

const killPod = async (): Promise<void> => {
  const before = await ids();
  const { leader = "" } = await statusOf();
  await endPod(leader, () => kubelet.kill(leader));
  await settled(3);
  assert.equal(await ids(), before, "the same members");
};

const loseDisk = async (): Promise<void> => {
  const { name, id } = await follower();
  kubelet.loseDisk(name);
  await wait("another member", async () => !(await ids()).includes(id));
  await settled(3);
};

await call(CLUSTERS, "POST", cluster("db"));
const first = await settled(3);
say(`3 members after ${seconds(startedAt)} s`);
const load = await Load.begin("history-1", 1n);
await load.step("quiet", () => delay(2000));

if (length === "whole") await load.step("grow to 5", () => resize(5));
if (length === "whole") await load.step("shrink to 3", () => resize(3));
await load.step("kill the leader's pod", killPod);
await load.step("lose a disk", loseDisk);

if (length === "short") {
  await load.end();
} else {
  await load.step("kill the operator, delete a pod", async () => {
    const { name } = await follower();
    await endPod(name, () => {
      kubelet.kill("operator");
      return call(`/api/v1/namespaces/apps/pods/${name}`, "DELETE");
    });
    await settled(3);
  });
  await load.step("cut the network of the leader's node for 10 s", async () => {
    const before = await ids();
    const { leader = "" } = await statusOf();
    kubelet.setCut(leader, true);
    await delay(10_000);
    kubelet.setCut(leader, false);
    await settled(3);
    assert.equal(await ids(), before, "the same members");
  });
  await load.step("cut a node off until its member is replaced", async () => {
    await change({ spec: { replaceAfterSeconds: 15 } });
    const { name, id } = await follower();
    kubelet.setCut(name, true);
    await wait("another member", async () => !(await ids()).includes(id));
    await change({ spec: { replaceAfterSeconds: spec.replaceAfterSeconds } });
    await settled(3);
    kubelet.setCut(name, false);
    await wait("the old pod ends", async () => !kubelet.runs(name));
    await settled(3);
  });
  await load.step("let the disks grow", async () => {
    await change({ spec: { storage: { size: "2Gi" } } });
    await settled(3);
    const { body } = await call("/api/v1/namespaces/apps/persistentvolumeclaims");
    const sizes = body.items.map((one: Claim) => one.status.capacity.storage);
    assert.deepEqual(sizes, ["2Gi", "2Gi", "2Gi"]);
  });
  await load.step("want no member, and then 3 again", async () => {
    await change({ spec: { size: 0 } });
    await wait("nothing runs", async () => kubelet.count(MEMBERS) === 0);
    await resize(3);
    assert.equal((await statusOf()).clusterID, first.clusterID);
  });
  await load.step("rotate certificates", async () => {
    const before = await secretText("db-member-tls", "tls.crt");
    await change({ metadata: { annotations: { "quorate.dev/rotate-certificates": "1" } } });
    await wait("a new one", async () => (await secretText("db-member-tls", "tls.crt")) !== before);
    await readIdentity();
    await delay(12_000);
    await settled(3);
  });
  await load.step("rotate the authority", async () => {
    const before = await secretText("db-ca", "tls.crt");
    await change({ metadata: { annotations: { "quorate.dev/rotate-authority": "1" } } });
    await wait("a new one signs, alone", async () => {
      await readIdentity();
      const bundle = await secretText("db-member-tls", "ca.crt");
      const isAlone = bundle.split("BEGIN CERTIFICATE").length === 2;
      return isAlone && (await secretText("db-ca", "tls.crt")) !== before;
    });
    await settled(3);
  });
  await load.step("upgrade", async () => {
    await change({ spec: { image: "quorate:2" } });
    await settled(3);
  });

  for (const name of ["backups", "fetched"])
    await call("/api/v1/namespaces/apps/persistentvolumeclaims", "POST", {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name },
      spec: { accessModes: ["ReadWriteMany"], resources: { requests: { storage: "1Gi" } } },
    });
  const mirror = await objectStore();
  const backup = (name: string, more: object) =>
    call(`${GROUP}/quoratebackups`, "POST", {
      apiVersion: "quorate.dev/v1alpha1",
      kind: "QuorateBackup",
      metadata: { name },
      spec: { cluster: "db", claim: "backups", path: name, ...more },
    });
  const isReady = (kind: string, name: string, reason: string) => async () => {
    const { body } = await call(`${GROUP}/${kind}/${name}`);
    const conditions = (body.status as Status | undefined)?.conditions ?? [];
    return conditions.some((one) => one.type === "Ready" && one.reason === reason);
  };
  await load.step("back up by snapshots", async () => {
    await backup("daily", { scheduled: { every: "24h" } });
    await wait("a snapshot", isReady("quoratebackups", "daily", "Saved"));
  });
  await load.end();

  const second = await Load.begin("history-2", 2n);
  await second.step("quiet", () => delay(4000));
  await second.step("lose the quorum, and recover it", async () => {
    const { name: survivor } = await follower();
    isOpen = () => false;
    for (const { name } of (await statusOf()).memberList!.filter((one) => one.name !== survivor))
      kubelet.loseDisk(name);
    await wait("the loss is noticed", async () => {
      const degraded = (await statusOf()).conditions?.find(({ type }) => type === "Degraded");
      return degraded?.reason === "QuorumLost";
    });
    await change({ metadata: { annotations: { "quorate.dev/recover-quorum": "yes" } } });
    await second.goneBack(0);
    const recovered = await settled(3);
    assert.equal(recovered.clusterID, first.clusterID);
    await change({ metadata: { annotations: { "quorate.dev/recover-quorum": null } } });
  });
  await second.end();

  /** All keys and values, as a text. */
  const contents = async (selector: Record<string, string>): Promise<string> => {
    const [address] = kubelet.addressesOf(selector).values();
    const client = new TestClient(`${address}:2379`, identity);
    try {
      const all = { key: fromLatin1("\0"), rangeEnd: fromLatin1("\0") };
      const { kvs } = await client.call(KVService.methods.Range, all, 10_000);
      return kvs
        .map((bytes) => KeyValue.decode(bytes))
        .map(({ key, value }) => `${Buffer.from(key)}=${Buffer.from(value)}`)
        .join("\n");
    } finally {
      client.close();
    }
  };
  const restore = (name: string, more: object) =>
    call(`${GROUP}/quoraterestores`, "POST", {
      apiVersion: "quorate.dev/v1alpha1",
      kind: "QuorateRestore",
      metadata: { name },
      spec: { cluster: "db", from: { claim: "backups", path: "always" }, ...more },
    });
  const third = await Load.begin("history-3", 3n);
  await third.step("back up continuously", async () => {
    await backup("always", {
      continuous: mirror === undefined ? {} : { mirror },
      restoreTest: {},
    });
    await wait("recording", isReady("quoratebackups", "always", "Recording"));
  });
  await third.step("test whether the backup can be restored", async () => {
    let tested: Condition | undefined;
    await wait("a test", async () => {
      const { body } = await call(`${GROUP}/quoratebackups/always`);
      const { conditions = [] } = body.status as Status;
      tested = conditions.find(({ type }) => type === "Restorable");
      return tested !== undefined;
    });
    say(tested!.message);
    assert.match(tested!.message, /with the cluster's hash/);
  });
  await third.step("restore in place", async () => {
    const { memberList = [] } = await statusOf();
    const old = new Set(memberList.map(({ name }) => name));
    isOpen = (name) => old.has(name);
    const bumpRevision = 1_000_000;
    await restore("in-place", { bumpRevision });
    await wait("restored", isReady("quoraterestores", "in-place", "Restored"));
    await third.goneBack(bumpRevision);
    const restored = await settled(3);
    assert.notEqual(restored.clusterID, first.clusterID);
    await wait("recording in another directory", async () => {
      const { body } = await call(`${GROUP}/quoratebackups/always`);
      const { directory } = body.status as { directory?: string };
      return directory === "always-2" && (await isReady("quoratebackups", "always", "Recording")());
    });
  });
  await third.end();

  // The store has the directory as it was when the cluster that it recorded ended.
  const copied = performance.now();
  const from =
    mirror === undefined
      ? { claim: "backups", path: "always" }
      : { claim: "fetched", path: "copy", mirror };
  await restore("copy", { cluster: "copy", from, create: { ...spec, size: 1 } });
  await wait("restored", isReady("quoraterestores", "copy", "Restored"));
  await settled(1, "copy");
  const place = mirror === undefined ? "a directory" : "the object store";
  say(`restore from ${place} into a new cluster: ${seconds(copied)} s`);
  const copyIdentity = {
    ca: await secretText("copy-client-tls", "ca.crt"),
    cert: await secretText("copy-client-tls", "tls.crt"),
    key: await secretText("copy-client-tls", "tls.key"),
  };
  Object.assign(identity, copyIdentity);
  assert.notEqual(await contents({ ...MEMBERS, "quorate.dev/cluster": "copy" }), "");

  // Users: enforced, with a password from a secret, with the permissions of the object.
  await call("/api/v1/namespaces/apps/secrets", "POST", {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "ann" },
    data: { password: Buffer.from("hers").toString("base64") },
  });
  await call(`${GROUP}/quorateusers`, "POST", {
    apiVersion: "quorate.dev/v1alpha1",
    kind: "QuorateUser",
    metadata: { name: "ann" },
    spec: {
      cluster: "copy",
      passwordSecret: { name: "ann" },
      permissions: [{ access: "readwrite", key: "app/", prefix: true }],
    },
  });
  await wait("the user", isReady("quorateusers", "ann", "Set"));
  await call(`${CLUSTERS}/copy`, "PATCH", { spec: { users: true } }, MERGE);
  await settled(1, "copy");
  const [copyAddress] = kubelet.addressesOf({ ...MEMBERS, "quorate.dev/cluster": "copy" }).values();
  const as = (auth: { name: string; password: string }) =>
    connect({
      endpoints: [`https://${copyAddress}:2379`],
      tls: { ...copyIdentity, serverName: "localhost" },
      auth,
    });
  const ann = as({ name: "ann", password: "hers" });
  const stranger = as({ name: "ann", password: "not hers" });
  await ann.put("app/greeting", "hello");
  await assert.rejects(ann.get("ka"), /permission denied/);
  await assert.rejects(stranger.get("app/greeting"), /authentication failed/);
  ann.close();
  stranger.close();
  say("users are enforced");
}

const heads = ["step", "takes", "longest write gap", ...(killing ? ["operator killed after"] : [])];
console.log(`\n| ${heads.join(" | ")} |\n|${"---|".repeat(heads.length)}`);
for (const row of rows) {
  const took = `${((row.untilUs - row.fromUs) / 1e6).toFixed(1)} s`;
  const killed = row.killedMs === undefined ? "" : `${(row.killedMs / 1000).toFixed(2)} s`;
  const cells = [
    row.what,
    took,
    `${longestGapMs(row).toFixed(0)} ms`,
    ...(killing ? [killed] : []),
  ];
  console.log(`| ${cells.join(" | ")} |`);
}
await kubelet.close();
await api.stop();
process.exit(0);
