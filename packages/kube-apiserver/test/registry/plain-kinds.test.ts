/** Built-in kinds without rules of their own, with their real tables. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { GroupVersionKind, KubeObject, ResourceSpec } from "@quorate/kube-storage";
import { kindSource } from "@quorate/kube-storage";
import { plainKinds } from "../../src/builtin/plain-kinds.ts";
import { KINDS } from "../interop/validation/cases.ts";
import { DELETE, RegistryWorld, START_MS } from "../support/registry-world.ts";

const sourceOf = ({ group, version, kind }: GroupVersionKind) => kindSource(group, version, kind);
const SPECS = plainKinds(sourceOf);

function specOf(plural: string): ResourceSpec {
  return SPECS.find(({ resource }) => resource === plural)!;
}

function decoded(spec: ResourceSpec, metadata: object, fields: object): KubeObject {
  const { group, version, kind } = spec.kind;
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return sourceOf(spec.kind).decode({ apiVersion, kind, metadata, ...fields }).object;
}

/** The cells of an object under their columns; the age is left out. */
function row(spec: ResourceSpec, fields: object): string {
  const metadata = { name: "x", creationTimestamp: "2026-01-02T03:04:05Z" };
  const cells = spec.table.cells(decoded(spec, metadata, fields), START_MS + 60_000);
  return spec.table.columns
    .map(({ name }, index) => `${name}=${cells[index]}`)
    .filter((text) => text !== "Age=60s" && text !== "Name=x")
    .join(" ");
}

const POD = { containers: [{ name: "c", image: "i" }] };
const PODS = { metadata: { labels: { a: "b" } }, spec: POD };
const TEMPLATE = { selector: { matchLabels: { a: "b" } }, template: PODS };

/** The fields of a good object. */
function goodFields({ kind }: ResourceSpec): object {
  return KINDS.find((one) => one.kind === kind.kind)?.good ?? {};
}

test("Each kind is stored, read and selected by name", async () => {
  // Both versions of HorizontalPodAutoscaler are one resource in the store.
  assert.equal(new Set(SPECS.map(({ storagePrefix }) => storagePrefix)).size, SPECS.length - 1);
  // An APIService has the name of its group and version: test/interop/aggregation.test.ts.
  for (const spec of SPECS.filter(({ resource }) => resource !== "apiservices")) {
    const w = new RegistryWorld(spec);
    const made = await w.create(decoded(spec, { name: "x" }, goodFields(spec)));
    const { generation, name = "" } = made.metadata;
    const counts = spec.strategy.prepareForCreate(w.ctx(), made).metadata.generation === 1;
    assert.equal(generation, counts ? 1 : undefined, spec.resource);
    assert.equal((await w.get(name)).kind, spec.kind.kind);
    assert.equal(spec.statusStrategy !== undefined, "status" in w.subresources, spec.resource);
    await w.delete(name, { ...DELETE, propagationPolicy: "Background" });
    assert.equal(await w.count(), 0, spec.resource);
  }
});

test("Fields that an object does not have are selected by their zero value, as in Kubernetes", () => {
  const fields = (plural: string, object: object): object => {
    const spec = specOf(plural);
    return spec.selectableFields!(decoded(spec, { name: "x" }, object));
  };
  assert.deepEqual(fields("nodes", {}), { "spec.unschedulable": "false" });
  const cordoned = { spec: { unschedulable: true } };
  assert.deepEqual(fields("nodes", cordoned), { "spec.unschedulable": "true" });
  const pod = fields("pods", { spec: POD }) as Record<string, string>;
  assert.equal(pod["spec.hostNetwork"], "false");
  assert.equal(pod["spec.nodeName"], "");
  assert.deepEqual(fields("jobs", {}), { "status.successful": "0" });
  const done = { status: { succeeded: 3 } };
  assert.deepEqual(fields("jobs", done), { "status.successful": "3" });
  assert.deepEqual(fields("replicationcontrollers", {}), { "status.replicas": "0" });
});

test("Keys are kube-apiserver's", () => {
  const prefix = (plural: string) => specOf(plural).storagePrefix;
  assert.deepEqual(
    ["services", "endpoints", "nodes", "ingresses", "replicationcontrollers", "deployments"].map(
      prefix,
    ),
    ["services/specs", "services/endpoints", "minions", "ingress", "controllers", "deployments"],
  );
});

test("/status changes metadata too, but what some kinds keep", async () => {
  const change = async (plural: string) => {
    const w = new RegistryWorld(specOf(plural));
    const fields = plural === "pods" ? { spec: POD } : { spec: TEMPLATE };
    const made = await w.create(decoded(w.spec, { name: "x" }, fields));
    const owner = { apiVersion: "v1", kind: "Node", name: "n", uid: "u" };
    const metadata = {
      ...made.metadata,
      annotations: { a: "1" },
      labels: { l: "1" },
      ownerReferences: [owner],
    };
    await w.put({ ...made, metadata, spec: {}, status: {} }, undefined, w.subresources["status"]);
    const after = await w.get("x");
    assert.deepEqual(after["spec"], made["spec"]);
    const { annotations, labels, ownerReferences } = after.metadata;
    return [annotations, labels, ownerReferences?.length];
  };
  const [a, l] = [{ a: "1" }, { l: "1" }];
  assert.deepEqual(await change("replicasets"), [a, l, 1]);
  assert.deepEqual(await change("deployments"), [a, undefined, 1]);
  assert.deepEqual(await change("pods"), [a, l, undefined]);
});

test("A node is made with the status that it says, and changes it at /status alone", async () => {
  const spec = specOf("nodes");
  const w = new RegistryWorld(spec);
  const node = (phase: string) => decoded(spec, { name: "x" }, { status: { phase } });
  const phaseOf = ({ status }: KubeObject) => (status as { readonly phase?: string }).phase;
  assert.equal(phaseOf(await w.create(node("Pending"))), "Pending");
  const prepared = spec.strategy.prepareForUpdate(w.ctx(), node("Running"), node("Pending"));
  assert.equal(phaseOf(prepared), "Pending");
});

test("A deployment's generation, status and scale", async () => {
  const w = new RegistryWorld(specOf("deployments"));
  const made = await w.create(
    decoded(w.spec, { name: "d" }, { spec: { ...TEMPLATE, replicas: 2 }, status: { replicas: 9 } }),
  );
  assert.equal(made.metadata.generation, 1);
  assert.deepEqual(made["status"] ?? {}, {});
  const { status, scale } = w.subresources;
  await w.put({ ...made, status: { replicas: 2, readyReplicas: 1 } }, undefined, status);
  const Scale = { apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name: "d" } };
  await w.put({ ...Scale, spec: { replicas: 5 } }, undefined, scale);
  const after = await w.get("d");
  assert.equal(after.metadata.generation, 2);
  assert.equal((after["spec"] as { replicas: number }).replicas, 5);
  assert.equal((after["status"] as { readyReplicas: number }).readyReplicas, 1);
});

test("A daemon set counts the changes of its template", async () => {
  const w = new RegistryWorld(specOf("daemonsets"));
  const count = ({ metadata }: KubeObject): string | undefined =>
    metadata.annotations?.["deprecated.daemonset.template.generation"];
  const made = await w.create(decoded(w.spec, { name: "d" }, { spec: TEMPLATE }));
  assert.equal(count(made), "1");
  const same = await w.put(decoded(w.spec, { name: "d", labels: { a: "b" } }, { spec: TEMPLATE }));
  assert.equal(count(same), "1");
  const template = { ...PODS, spec: { containers: [{ name: "c", image: "other" }] } };
  const other = await w.put(decoded(w.spec, { name: "d" }, { spec: { ...TEMPLATE, template } }));
  assert.equal(count(other), "2");
});

test("A pod on a node is deleted after its grace period, others at once", async () => {
  const w = new RegistryWorld(specOf("pods"));
  await w.create(decoded(w.spec, { name: "free" }, { spec: POD }));
  assert.equal((await w.delete("free")).deletedNow, true);
  await w.create(decoded(w.spec, { name: "bound" }, { spec: { ...POD, nodeName: "n" } }));
  const marked = (await w.delete("bound")).result as KubeObject;
  assert.equal(marked.metadata.deletionGracePeriodSeconds, 30);
  assert.equal(marked.metadata.generation, 2);
  await w.put({ ...marked, status: { phase: "Succeeded" } }, undefined, w.subresources["status"]);
  assert.equal((await w.delete("bound", { ...DELETE, gracePeriodSeconds: 0 })).deletedNow, true);
});

test("Tables of workloads", () => {
  const status = { replicas: 3, readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1 };
  const spec = { ...TEMPLATE, replicas: 3 };
  assert.equal(
    row(specOf("deployments"), { spec, status }),
    "Ready=1/3 Up-to-date=2 Available=1 Containers=c Images=i Selector=a=b",
  );
  assert.equal(
    row(specOf("replicasets"), { spec, status }),
    "Desired=3 Current=3 Ready=1 Containers=c Images=i Selector=a=b",
  );
  assert.equal(row(specOf("statefulsets"), { spec, status }), "Ready=1/3 Containers=c Images=i");
  assert.equal(
    row(specOf("daemonsets"), { spec: TEMPLATE, status: { desiredNumberScheduled: 2 } }),
    "Desired=2 Current=0 Ready=0 Up-to-date=0 Available=0 Node Selector=<none> Containers=c " +
      "Images=i Selector=a=b",
  );
  assert.equal(
    row(specOf("jobs"), {
      spec: { ...TEMPLATE, completions: 2 },
      status: {
        succeeded: 2,
        conditions: [{ type: "Complete", status: "True" }],
        startTime: "2026-01-02T03:04:05Z",
        completionTime: "2026-01-02T03:04:15Z",
      },
    }),
    "Status=Complete Completions=2/2 Duration=10s Containers=c Images=i Selector=a=b",
  );
  assert.equal(
    row(specOf("cronjobs"), { spec: { schedule: "* * * * *", jobTemplate: { spec: TEMPLATE } } }),
    "Schedule=* * * * * Timezone=<none> Suspend=False Active=0 Last Schedule=<none> " +
      "Containers=c Images=i Selector=a=b",
  );
  const ports = [{ port: 80, nodePort: 30080 }, { port: 443 }];
  assert.equal(
    row(specOf("services"), {
      spec: { type: "LoadBalancer", clusterIPs: ["10.0.0.1"], ports, selector: { a: "b" } },
      status: { loadBalancer: { ingress: [{ ip: "1.2.3.4" }, { hostname: "h" }] } },
    }),
    "Type=LoadBalancer Cluster-IP=10.0.0.1 External-IP=1.2.3.4,h Port(s)=80:30080/TCP,443/TCP " +
      "Selector=a=b",
  );
  assert.equal(
    row(specOf("services"), { spec: {} }),
    "Type=ClusterIP Cluster-IP=<none> External-IP=<none> Port(s)=<none> Selector=<none>",
  );
});

test("Tables of kinds around workloads", () => {
  assert.equal(
    row(specOf("ingresses"), {
      spec: { rules: ["a", "b", "c", "d"].map((host) => ({ host })), tls: [{}] },
      status: { loadBalancer: { ingress: [{ hostname: "h" }, { ip: "1.2.3.4" }] } },
    }),
    "Class=<none> Hosts=a,b,c + 1 more... Address=1.2.3.4,h Ports=80, 443",
  );
  assert.equal(
    row(specOf("persistentvolumes"), {
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteMany", "ReadWriteOnce"],
        claimRef: { namespace: "n", name: "c" },
        storageClassName: "fast",
        persistentVolumeReclaimPolicy: "Retain",
        volumeMode: "Block",
      },
      status: { phase: "Bound" },
    }),
    "Capacity=1Gi Access Modes=RWO,RWX Reclaim Policy=Retain Status=Bound Claim=n/c " +
      "StorageClass=fast VolumeAttributesClass=<unset> Reason= VolumeMode=Block",
  );
  assert.match(
    row(specOf("persistentvolumeclaims"), {
      spec: { volumeName: "v", volumeMode: "Block" },
      status: { phase: "Bound", capacity: { storage: "1Gi" }, accessModes: ["ReadOnlyMany"] },
    }),
    /^Status=Bound Volume=v Capacity=1Gi Access Modes=ROX StorageClass= /,
  );
  assert.equal(
    row(specOf("resourcequotas"), {
      status: { hard: { pods: "4", "limits.cpu": "2" }, used: { pods: "1" } },
    }),
    "Request=pods: 1/4 Limit=limits.cpu: 0/2",
  );
  assert.equal(
    row(specOf("storageclasses"), { provisioner: "p" }),
    "Provisioner=p ReclaimPolicy=Delete VolumeBindingMode=Immediate AllowVolumeExpansion=false",
  );
  assert.match(
    row(specOf("controllerrevisions"), { revision: 3 }),
    /^Controller=<none> Revision=3$/,
  );
  const annotations = { "storageclass.kubernetes.io/is-default-class": "true" };
  const fast = decoded(specOf("storageclasses"), { name: "fast", annotations }, {});
  assert.equal(specOf("storageclasses").table.cells(fast, 0)[0], "fast (default)");
});

test("What the table says of a pod", () => {
  const status = (fields: object, spec: object = POD): string =>
    row(specOf("pods"), { spec, status: fields }).replace(/ IP=.*/, "");
  const running = { name: "c", ready: true, restartCount: 2, state: { running: {} } };
  assert.equal(status({ phase: "Pending" }), "Ready=0/1 Status=Pending Restarts=0");
  assert.equal(
    status({ phase: "Running", containerStatuses: [running] }),
    "Ready=1/1 Status=Running Restarts=2",
  );
  const crashed = {
    name: "c",
    restartCount: 3,
    state: { waiting: { reason: "CrashLoopBackOff" } },
    lastState: { terminated: { exitCode: 1, finishedAt: "2026-01-02T03:04:35Z" } },
  };
  assert.equal(
    status({ phase: "Running", containerStatuses: [crashed] }),
    "Ready=0/1 Status=CrashLoopBackOff Restarts=3 (30s ago)",
  );
  const failed = { name: "c", state: { terminated: { exitCode: 3 } } };
  assert.match(status({ phase: "Failed", containerStatuses: [failed] }), /Status=ExitCode:3 /);
  const initial = {
    ...POD,
    initContainers: [{ name: "i" }, { name: "s", restartPolicy: "Always" }],
  };
  const waits = [{ name: "i", state: { waiting: { reason: "PodInitializing" } } }];
  assert.equal(
    status({ phase: "Pending", initContainerStatuses: waits }, initial),
    "Ready=0/2 Status=Init:0/2 Restarts=0",
  );
  const broken = [{ name: "i", state: { terminated: { exitCode: 1, reason: "Error" } } }];
  assert.match(status({ initContainerStatuses: broken }, initial), /Status=Init:Error /);
  const done = [
    { name: "i", state: { terminated: { exitCode: 0 } } },
    { name: "s", ready: true, started: true, state: { running: {} } },
  ];
  assert.equal(
    status(
      { phase: "Running", initContainerStatuses: done, containerStatuses: [running] },
      initial,
    ),
    "Ready=2/2 Status=Running Restarts=2",
  );
  const gated = [{ type: "PodScheduled", status: "False", reason: "SchedulingGated" }];
  assert.match(status({ phase: "Pending", conditions: gated }), /Status=SchedulingGated /);
});
