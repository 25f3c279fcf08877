/** What pods get from the classes that they name, and which clients get no certificate. */
import "reflect-metadata";
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import * as x509 from "@peculiar/x509";
import { SeededRandom } from "@quorate/host";
import { type RunningApiServer, startApiServer } from "@quorate/kube-apiserver/node";
import { mergedTolerations, type Toleration } from "../../src/admission/runtime-class.ts";
import { requestedOrganizations } from "../../src/admission/subject-restriction.ts";

const PODS = "/api/v1/namespaces/default/pods";
const PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses";
const RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses";
const REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENTS = "kubernetes.io/kube-apiserver-client";

type Fields = Readonly<Record<string, unknown>>;

async function open(t: TestContext): Promise<RunningApiServer> {
  const api = await startApiServer({ controllers: [] });
  t.after(() => api.stop());
  return api;
}

const pod = (name: string, spec: Fields = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "i" }], ...spec },
});

async function created(api: RunningApiServer, path: string, body: unknown) {
  const response = await api.request(path, { body });
  assert.equal(response.status, 201, JSON.stringify(response.body));
  return response.body;
}

async function refused(api: RunningApiServer, path: string, body: unknown, message: string) {
  const response = await api.request(path, { body });
  assert.deepEqual([response.status, response.body.message], [403, message]);
}

test("A pod waits for the service account that a controller makes", async (t) => {
  const api = await startApiServer({ plugins: new Set(["ServiceAccount"]) });
  t.after(() => api.stop());
  const namespaces = Array.from({ length: 5 }, (_, i) => `waits-${i}`);
  await Promise.all(
    namespaces.map(async (name) => {
      await created(api, "/api/v1/namespaces", { metadata: { name } });
      const { spec } = await created(api, `/api/v1/namespaces/${name}/pods`, pod("first"));
      assert.equal(spec.serviceAccountName, "default");
    }),
  );
});

test("A new node has a taint until a controller takes it, and has it once", async (t) => {
  const api = await open(t);
  const nodes = "/api/v1/nodes";
  const taint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };
  const plain = await created(api, nodes, { metadata: { name: "plain" } });
  assert.deepEqual(plain.spec, { taints: [taint] });
  const own = [
    { ...taint, value: "own" },
    { key: "a", effect: "NoExecute" },
  ];
  const tainted = await created(api, nodes, { metadata: { name: "own" }, spec: { taints: own } });
  assert.deepEqual(tainted.spec.taints, own);
  const untainted = { ...plain, spec: { podCIDR: "10.1.0.0/24" } };
  const changed = await api.request(`${nodes}/plain`, { method: "PUT", body: untainted });
  assert.equal(changed.body.spec.taints, undefined);
});

test("A pod has the priority of its class, and keeps it", async (t) => {
  const api = await open(t);
  const priorityOf = ({ spec }: { spec: Fields }) => [
    spec["priorityClassName"],
    spec["priority"],
    spec["preemptionPolicy"],
  ];
  const plain = await created(api, PODS, pod("plain"));
  assert.deepEqual(priorityOf(plain), [undefined, 0, "PreemptLowerPriority"]);
  await created(api, PRIORITIES, {
    metadata: { name: "calm" },
    value: 7,
    preemptionPolicy: "Never",
  });
  // The store is asked where the informer has not seen the class yet.
  const calm = await created(api, PODS, pod("calm", { priorityClassName: "calm" }));
  assert.deepEqual(priorityOf(calm), ["calm", 7, "Never"]);
  const critical = pod("critical", { priorityClassName: "system-node-critical" });
  assert.deepEqual(priorityOf(await created(api, PODS, critical)), [
    "system-node-critical",
    2_000_001_000,
    "PreemptLowerPriority",
  ]);
  await created(api, PODS, pod("same", { priorityClassName: "calm", priority: 7 }));
  const { priority: _, preemptionPolicy: __, ...without } = calm.spec;
  const put = { method: "PUT", body: { ...calm, spec: without } };
  const changed = await api.request(`${PODS}/calm`, put);
  assert.deepEqual([changed.status, priorityOf(changed.body)], [200, ["calm", 7, "Never"]]);
});

test("A pod names a class that exists, and no other priority", async (t) => {
  const api = await open(t);
  const computed = (what: string, value: string) =>
    `pods "x" is forbidden: the ${what} must not be provided in pod spec; priority admission ` +
    `controller computed ${value} from the given PriorityClass name`;
  for (const name of ["none", "A/../b"])
    await refused(
      api,
      PODS,
      pod("x", { priorityClassName: name }),
      `pods "x" is forbidden: no PriorityClass with name ${name} was found`,
    );
  const five = pod("x", { priority: 5 });
  await refused(api, PODS, five, computed("integer value of priority (5)", "0"));
  await refused(
    api,
    PODS,
    pod("x", { preemptionPolicy: "Never", priorityClassName: "system-node-critical" }),
    computed("string value of PreemptionPolicy (Never)", "PreemptLowerPriority"),
  );
});

test("One class at most is the default", async (t) => {
  const api = await open(t);
  const base = await created(api, PRIORITIES, {
    metadata: { name: "base" },
    value: 3,
    globalDefault: true,
  });
  for (;;) {
    const { body } = await api.request(`${PODS}?dryRun=All`, { body: pod("x") });
    if (body.spec.priorityClassName === "base") {
      assert.equal(body.spec.priority, 3);
      break;
    }
    await delay(5);
  }
  const why = "PriorityClass base is already marked as default. Only one default can exist";
  const second = { metadata: { name: "second" }, value: 9, globalDefault: true };
  const message = `priorityclasses.scheduling.k8s.io "second" is forbidden: ${why}`;
  await refused(api, PRIORITIES, second, message);
  const other = await created(api, PRIORITIES, { ...second, globalDefault: false });
  const put = (body: { metadata: { name: string } }) =>
    api.request(`${PRIORITIES}/${body.metadata.name}`, { method: "PUT", body });
  const marked = await put({ ...other, globalDefault: true });
  assert.deepEqual([marked.status, marked.body.message], [403, message]);
  assert.equal((await put({ ...base, description: "d" })).status, 200);
  await api.request(`${PRIORITIES}/base`, { method: "DELETE" });
  for (;;) {
    const { status } = await put({ ...other, globalDefault: true });
    if (status === 200) break;
    await delay(5);
  }
});

test("A pod gets what its RuntimeClass says, or is refused", async (t) => {
  const api = await open(t);
  const toleration = { key: "vm", operator: "Exists" };
  const made = {
    metadata: { name: "vm" },
    handler: "vm",
    overhead: { podFixed: { cpu: "250m", memory: "1Gi" } },
    scheduling: { nodeSelector: { vm: "yes" }, tolerations: [toleration] },
  };
  await created(api, RUNTIMES, made);
  await created(api, RUNTIMES, { metadata: { name: "bare" }, handler: "bare" });
  const ofVm = (spec: Fields = {}) => pod("x", { runtimeClassName: "vm", ...spec });
  const { spec } = await created(
    api,
    PODS,
    ofVm({
      overhead: { cpu: "0.25", memory: "1024Mi" },
      nodeSelector: { disk: "fast", vm: "yes" },
      tolerations: [{ key: "vm", operator: "Equal", value: "a", effect: "NoSchedule" }],
    }),
  );
  assert.deepEqual(spec.overhead, { cpu: "250m", memory: "1Gi" });
  assert.deepEqual(spec.nodeSelector, { disk: "fast", vm: "yes" });
  assert.deepEqual(spec.tolerations, [toleration]);
  const bare = await created(api, PODS, pod("bare", { runtimeClassName: "bare" }));
  assert.deepEqual([bare.spec.overhead, bare.spec.nodeSelector], [undefined, undefined]);
  const cases: readonly (readonly [spec: Fields, why: string])[] = [
    [{ runtimeClassName: "none" }, 'pod rejected: RuntimeClass "none" not found'],
    [{ runtimeClassName: "../b" }, 'pod rejected: RuntimeClass "../b" not found'],
    [
      { runtimeClassName: "vm", overhead: { cpu: "1" } },
      "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    ],
    [
      { runtimeClassName: "bare", overhead: { cpu: "1" } },
      "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
    ],
    [
      { runtimeClassName: "vm", nodeSelector: { vm: "no" } },
      "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no",
    ],
  ];
  for (const [more, why] of cases)
    await refused(api, PODS, pod("y", more), `pods "y" is forbidden: ${why}`);
  const unread = await api.request(PODS, { body: ofVm({ overhead: { cpu: "many" } }) });
  assert.equal(unread.status, 400);
});

test("Plug-ins can be taken away", async (t) => {
  const api = await startApiServer({ controllers: [], plugins: new Set() });
  t.after(() => api.stop());
  const { spec } = await created(
    api,
    PODS,
    pod("x", { priorityClassName: "none", runtimeClassName: "none" }),
  );
  assert.deepEqual([spec.priority, spec.runtimeClassName], [undefined, "none"]);
});

/** Tolerations as Kubernetes' documents describe their order: each one with each other. */
function slowlyMerged(all: readonly Toleration[]): Toleration[] {
  const parts = (one: Toleration) => [
    one.key ?? "",
    one.operator ?? "",
    one.value ?? "",
    one.effect ?? "",
    one.tolerationSeconds ?? null,
  ];
  const same = (a: Toleration, b: Toleration) =>
    JSON.stringify(parts(a)) === JSON.stringify(parts(b));
  const covers = (wide: Toleration, one: Toleration): boolean => {
    const { key = "", operator = "", value = "", effect = "", tolerationSeconds: most } = wide;
    if (same(wide, one)) return true;
    if ((one.key ?? "") !== key && (key !== "" || operator !== "Exists")) return false;
    if ((one.effect ?? "") !== effect && effect !== "") return false;
    const seconds = one.tolerationSeconds;
    if (effect === "NoExecute" && typeof most === "number")
      if (typeof seconds !== "number" || seconds > most) return false;
    if (operator === "Exists") return true;
    return operator !== "Lt" && one.operator === "Equal" && (one.value ?? "") === value;
  };
  const merged: Toleration[] = [];
  for (const [index, one] of all.entries()) {
    const later = all.slice(index + 1);
    const isCovered =
      merged.some((wide) => covers(wide, one)) ||
      later.some((wide) => !same(wide, one) && covers(wide, one));
    if (!isCovered) merged.push(one);
  }
  return merged;
}

test("Tolerations of two lists are merged as if each was compared with each", () => {
  const random = new SeededRandom(11n);
  const oneOf = <T>(...values: readonly T[]): T => values[random.below(values.length)] as T;
  const any = (): Toleration => ({
    ...oneOf<Toleration>({ key: "a" }, { key: "b" }, {}),
    ...oneOf<Toleration>({ operator: "Equal" }, { operator: "Exists" }, { operator: "Lt" }, {}),
    ...oneOf<Toleration>({ value: "1" }, { value: "2" }, {}),
    ...oneOf<Toleration>({ effect: "NoExecute" }, { effect: "NoSchedule" }, {}),
    ...oneOf<Toleration>({ tolerationSeconds: 5 }, { tolerationSeconds: 9 }, {}),
  });
  for (let run = 0; run < 3000; run++) {
    const all = Array.from({ length: 1 + random.below(8) }, any);
    assert.deepEqual(mergedTolerations(all), slowlyMerged(all), JSON.stringify(all));
  }
});

async function signingRequest(name: x509.JsonName): Promise<string> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const made = await x509.Pkcs10CertificateRequestGenerator.create({
    name,
    keys: keys as x509.Pkcs10CertificateRequestCreateParams["keys"],
    signingAlgorithm: algorithm,
  });
  return `${made.toString("pem")}\n`;
}

test("Nobody asks for a certificate of system:masters", async (t) => {
  const api = await open(t);
  const ask = (name: string, pem: string, signerName = CLIENTS) => ({
    metadata: { name },
    spec: { request: Buffer.from(pem).toString("base64"), signerName, usages: ["client auth"] },
  });
  const users = await signingRequest([{ O: ["team"] }, { O: ["others"] }, { CN: ["ann"] }]);
  const masters = await signingRequest([{ O: ["team"] }, { O: ["system:masters"] }]);
  await created(api, REQUESTS, ask("users", users));
  await created(api, REQUESTS, ask("elsewhere", masters, "example.com/clients"));
  const forbidden = (name: string, why: string) =>
    `certificatesigningrequests.certificates.k8s.io "${name}" is forbidden: ${why}`;
  const why = `use of ${CLIENTS} signer with system:masters group is not allowed`;
  await refused(api, REQUESTS, ask("masters", masters), forbidden("masters", why));
  const unread = forbidden("x", "failed to parse CSR: it is no certificate request");
  for (const text of [
    "",
    "x",
    users + masters,
    `-----BEGIN X-----\n!\n-----END X-----\n${masters}`,
  ])
    await refused(api, REQUESTS, ask("x", text), unread);
});

test("A request's organizations are read in every encoding, and nothing else is", async () => {
  const pem = await signingRequest([{ O: ["a", "system:masters"] }, { OU: ["no"] }]);
  assert.deepEqual(requestedOrganizations(pem), ["a", "system:masters"]);
  const der = Buffer.from(new x509.Pkcs10CertificateRequest(pem).rawData);
  const pemOf = (bytes: Uint8Array) => {
    const text = Buffer.from(bytes).toString("base64");
    return `-----BEGIN CERTIFICATE REQUEST-----\n${text}\n-----END CERTIFICATE REQUEST-----\n`;
  };
  assert.deepEqual(requestedOrganizations(pemOf(der)), ["a", "system:masters"]);
  for (let end = 0; end < der.length; end++)
    assert.equal(requestedOrganizations(pemOf(der.subarray(0, end))), undefined);
  assert.equal(requestedOrganizations(pemOf(Buffer.concat([der, der]))), undefined);
  const element = (tag: number, ...parts: readonly Uint8Array[]) => {
    const inside = Buffer.concat(parts);
    return Buffer.concat([Buffer.from([tag, inside.length]), inside]);
  };
  const version = Buffer.from([0x02, 1, 0]);
  const organization = Buffer.from([0x06, 3, 0x55, 0x04, 0x0a]);
  const asked = (text: Buffer, tag: number) =>
    pemOf(
      element(
        0x30,
        element(
          0x30,
          version,
          element(0x30, element(0x31, element(0x30, organization, element(tag, text)))),
        ),
      ),
    );
  const wide = Buffer.from("system:masters", "utf16le").swap16();
  assert.deepEqual(requestedOrganizations(asked(wide, 0x1e)), ["system:masters"]);
  for (const tag of [0x0c, 0x13, 0x14, 0x16])
    assert.deepEqual(requestedOrganizations(asked(Buffer.from("system:masters"), tag)), [
      "system:masters",
    ]);
  const endless = Buffer.from(der);
  endless[1] = 0x80;
  assert.equal(requestedOrganizations(pemOf(endless)), undefined);
  assert.equal(requestedOrganizations(pem.replaceAll("CERTIFICATE REQUEST", "KEY")), undefined);
});
