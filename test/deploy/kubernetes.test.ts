/**
 * What is deployed to Kubernetes starts members with flags that there are: the plain manifest, the
 * Helm chart (rendered where helm is installed), and the manifest that kubeadm writes for a control
 * plane's etcd, by which a member is started and probed.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "@quorate/server";
import { request } from "undici";
import { parse, parseAllDocuments } from "yaml";
import { writeCertificates } from "../../scripts/certs.ts";
import { findProgram, quorate } from "../support/executables.ts";
import { TestMember } from "../support/member.ts";
import { freePorts } from "../support/ports.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { until } from "../support/until.ts";

const deploy = join(import.meta.dirname, "../../deploy");
const chart = join(deploy, "helm/quorate");

/** What the secrets hold is not looked into here. */
const PEM = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

interface Container {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts: readonly { readonly name: string }[];
  readonly livenessProbe: { readonly httpGet: { readonly path: string } };
  readonly readinessProbe: { readonly httpGet: { readonly path: string } };
  readonly securityContext: { readonly readOnlyRootFilesystem: boolean };
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly replicas: number;
    readonly serviceName: string;
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly containers: readonly Container[];
        readonly volumes: readonly { readonly name: string }[];
      };
    };
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
  };
}

/**
 * All documents of a file; a key that comes twice, or anything else that YAML does not allow, is an
 * error.
 */
function manifests(text: string): Manifest[] {
  const found: Manifest[] = [];
  for (const document of parseAllDocuments(text)) {
    if ("errors" in document) assert.deepEqual(document.errors, []);
    const value = document.toJS() as Manifest | null;
    if (value !== null) found.push(value);
  }
  return found;
}

/** Reads what the member in a StatefulSet would be started with; rejects if it would not start. */
async function configOf(set: Manifest): Promise<Awaited<ReturnType<typeof loadConfig>>> {
  const { containers, volumes } = set.spec.template.spec;
  const container = containers[0];
  const name = `${set.metadata.name}-0`;
  const filled = (text: string) => text.replace(/\$\((?:POD_NAME|ETCD_NAME)\)/g, name);
  const env: Record<string, string> = {};
  for (const { name: variable, value } of container.env ?? [])
    env[variable] = filled(value ?? name);
  // Every variable that looks like a flag's is one.
  const known = new Set(parseVariables());
  for (const variable of Object.keys(env))
    if (variable.startsWith("ETCD_")) assert.ok(known.has(variable), variable);
  const mounted = new Set(
    [...volumes, ...(set.spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata)].map(
      (one) => one.name,
    ),
  );
  for (const mount of container.volumeMounts)
    assert.ok(mounted.has(mount.name), `volume ${mount.name}`);
  assert.deepEqual(set.spec.template.metadata.labels, {
    ...set.spec.template.metadata.labels,
    ...set.spec.selector.matchLabels,
  });
  assert.equal(container.livenessProbe.httpGet.path, "/livez");
  assert.equal(container.readinessProbe.httpGet.path, "/readyz");
  assert.equal(container.securityContext.readOnlyRootFilesystem, true);
  const args = (container.args ?? []).map(filled);
  // The chart's start.sh says which cluster it is: here the one that pod 0 begins.
  const peerUrl = args
    .map((arg) => /^--initial-advertise-peer-urls=(.*)$/.exec(arg)?.[1])
    .find((url) => url !== undefined);
  if (container.command !== undefined)
    args.push(
      `--initial-cluster=${name}=${peerUrl}`,
      "--initial-cluster-state=new",
      "--auto-promote",
    );
  return loadConfig(args, env, () => PEM);
}

function parseVariables(): string[] {
  const docs = readFileSync(
    join(import.meta.dirname, "../../docs/reference/configuration.md"),
    "utf8",
  );
  return [...docs.matchAll(/`(ETCD_[A-Z0-9_]+)`/g)].map((match) => match[1]);
}

test("the manifest starts three members, each with a configuration that is read without complaint", async () => {
  const all = manifests(readFileSync(join(deploy, "kubernetes/quorate.yaml"), "utf8"));
  assert.deepEqual(all.map(({ kind }) => kind).sort(), [
    "NetworkPolicy",
    "PodDisruptionBudget",
    "Service",
    "Service",
    "StatefulSet",
  ]);
  const set = all.find(({ kind }) => kind === "StatefulSet")!;
  const invocation = await configOf(set);
  assert.ok(invocation.kind === "run");
  assert.equal(invocation.config.initialCluster.size, set.spec.replicas);
  assert.deepEqual(
    invocation.notices.filter(({ level }) => level !== "info"),
    [],
  );
});

test("the chart's settings are those of its schema, and its flags are a member's", async () => {
  const values = parse(readFileSync(join(chart, "values.yaml"), "utf8")) as Record<string, unknown>;
  const schema = JSON.parse(readFileSync(join(chart, "values.schema.json"), "utf8")) as Schema;
  assert.deepEqual(differences(schema, values, ""), []);
  const flags = Object.entries(values["flags"] as Record<string, string>).map(
    ([flag, value]) => `--${flag}=${value}`,
  );
  const template = readFileSync(join(chart, "templates/statefulset.yaml"), "utf8");
  const own = [...template.matchAll(/^ +- --([a-z-]+)=/gm)].map((match) => match[1]);
  assert.ok(own.length >= 16, own.join());
  const start = readFileSync(join(chart, "files/start.sh"), "utf8");
  own.push(
    ...[.../^ +exec "\$bin\/quorate" .*$/m.exec(start)![0].matchAll(/--([a-z-]+)/g)].map(
      (match) => match[1],
    ),
  );
  assert.deepEqual(own.slice(-3), ["initial-cluster", "initial-cluster-state", "auto-promote"]);
  const known = new Set(parseVariables());
  for (const flag of own)
    assert.ok(known.has(`ETCD_${flag.toUpperCase().replaceAll("-", "_")}`), flag);
  // What the chart sets cannot be set twice.
  const { not } = (
    schema.properties!["flags"] as Schema & { propertyNames: { not: { enum: string[] } } }
  ).propertyNames;
  for (const flag of own)
    if (!/(?:cert|key|ca)(?:-file|-auth)$/.test(flag))
      assert.ok(not.enum.includes(flag), `${flag} in the schema`);
  await loadConfig(flags, {}, () => "");
});

interface Schema {
  readonly type?: string;
  readonly additionalProperties?: boolean | Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
}

/**
 * Where values and the closed parts of a schema have different keys. "global" is what helm itself
 * adds.
 */
function differences(schema: Schema, value: unknown, at: string): string[] {
  if (schema.additionalProperties !== false || schema.properties === undefined) return [];
  const there = Object.keys(value as object);
  const allowed = Object.keys(schema.properties).filter((key) => key !== "global");
  return [
    ...there
      .filter((key) => !allowed.includes(key))
      .map((key) => `${at}${key} is not in the schema`),
    ...allowed
      .filter((key) => !there.includes(key))
      .map((key) => `${at}${key} is not in values.yaml`),
    ...there.flatMap((key) =>
      differences(
        schema.properties![key] ?? {},
        (value as Record<string, unknown>)[key],
        `${at}${key}.`,
      ),
    ),
  ];
}

const helm = findProgram("helm");
/** What start.sh and the jobs that take members out of the cluster are made of. */
const HOOKS_AND_SCRIPTS = ["ConfigMap", "ConfigMap", "Job", "Job"];
const VARIANTS: readonly (readonly [
  name: string,
  values: Record<string, unknown>,
  kinds: readonly string[],
])[] = [
  [
    "as it is",
    {},
    [
      ...HOOKS_AND_SCRIPTS,
      "NetworkPolicy",
      "Pod",
      "PodDisruptionBudget",
      "Service",
      "Service",
      "ServiceAccount",
      "StatefulSet",
    ],
  ],
  [
    "five members without TLS, with everything that is optional",
    {
      replicaCount: 5,
      tls: { enabled: false },
      persistence: { enabled: false },
      antiAffinity: "preferred",
      networkPolicy: {
        clientsFrom: [{ namespaceSelector: { matchLabels: { team: "a" } } }],
        metricsFrom: [{ namespaceSelector: {} }],
      },
      serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
      backup: { enabled: true, volume: { persistentVolumeClaim: { claimName: "backup" } } },
      service: { type: "LoadBalancer", annotations: { a: "b" } },
      flags: { metrics: "extensive", "pre-vote": "" },
      extraEnv: [{ name: "NODE_OPTIONS", value: "--max-old-space-size=1500" }],
      imagePullSecrets: [{ name: "registry" }],
      podLabels: { team: "a" },
      podAnnotations: { a: "b" },
      tolerations: [{ key: "k", operator: "Exists" }],
      nodeSelector: { disk: "nvme" },
      priorityClassName: "high",
    },
    [
      "ConfigMap",
      "ConfigMap",
      "CronJob",
      "Job",
      "Job",
      "NetworkPolicy",
      "Pod",
      "PodDisruptionBudget",
      "Service",
      "Service",
      "ServiceAccount",
      "ServiceMonitor",
      "StatefulSet",
    ],
  ],
  [
    "one member with as little as can be",
    {
      replicaCount: 1,
      antiAffinity: "none",
      nameOverride: "kv",
      tls: { clientCertAuth: false },
      serviceAccount: { create: false },
      podDisruptionBudget: { enabled: false },
      networkPolicy: { enabled: false },
      persistence: { storageClass: "fast" },
    },
    [...HOOKS_AND_SCRIPTS, "Pod", "Service", "Service", "StatefulSet"],
  ],
];

test("helm lints the chart and renders it for several settings; what it renders starts members", {
  skip: helm === undefined ? "helm is not installed (https://helm.sh/docs/intro/install/)" : false,
}, async (t) => {
  const dir = scratchDirectory("quorate-helm-", t);
  const run = (...args: string[]) =>
    spawnSync(helm!, args, { encoding: "utf8", env: { ...process.env, HELM_CACHE_HOME: dir } });
  // One that was built from source assumes an obsolete version of Kubernetes by default.
  const version = "--kube-version=1.31.0";
  for (const [name, values, kinds] of VARIANTS) {
    const file = join(dir, "values.json");
    writeFileSync(file, JSON.stringify(values));
    const lint = run("lint", "--strict", version, "-f", file, chart);
    assert.equal(lint.status, 0, `${name}: ${lint.stdout}${lint.stderr}`);
    const rendered = run("template", "store", chart, version, "--namespace=db", "-f", file);
    assert.equal(rendered.status, 0, `${name}: ${rendered.stderr}`);
    const all = manifests(rendered.stdout);
    assert.deepEqual(all.map(({ kind }) => kind).sort(), kinds, name);
    const set = all.find(({ kind }) => kind === "StatefulSet")!;
    const invocation = await configOf(set);
    assert.ok(invocation.kind === "run");
    assert.equal(invocation.config.initialCluster.size, 1, name);
  }
  for (const [bad, text] of [
    ["replicaCount=2", "/replicaCount"],
    ["flags.name=x", "propertyName 'name'"],
    ["tls.enabledd=true", "enabledd"],
    ["backup.enabled=true", "backup.enabled needs backup.volume"],
    ["tls.peerSecret=", "tls.enabled needs"],
  ] as const) {
    const { status, stderr } = run("template", "store", chart, version, "--set", bad);
    assert.notEqual(status, 0, bad);
    assert.ok(stderr.includes(text), `${bad}: ${stderr}`);
  }
});

/** A document by kind and name, as it stands in a manifest. */
function byName(text: string): Map<string, Record<string, unknown>> {
  const all = manifests(text) as unknown as Record<string, unknown>[];
  return new Map(
    all.map((one) => [`${one["kind"]}/${(one["metadata"] as { name: string }).name}`, one]),
  );
}

test("helm renders the operator's chart as its manifest is, and as values say", {
  skip: helm === undefined ? "helm is not installed (https://helm.sh/docs/intro/install/)" : false,
}, (t) => {
  const dir = scratchDirectory("quorate-helm-", t);
  const operator = join(deploy, "helm/quorate-operator");
  const env = { ...process.env, HELM_CACHE_HOME: dir };
  const run = (...args: string[]) => spawnSync(helm!, args, { encoding: "utf8", env });
  const version = "--kube-version=1.31.0";
  const lint = run("lint", "--strict", version, operator);
  assert.equal(lint.status, 0, `${lint.stdout}${lint.stderr}`);
  const render = (...more: string[]) => {
    const args = ["template", "o", operator, version, "--namespace=quorate-system", ...more];
    const { status, stdout, stderr } = run(...args);
    assert.equal(status, 0, stderr);
    return byName(stdout);
  };
  const plain = byName(readFileSync(join(deploy, "kubernetes/operator.yaml"), "utf8"));
  plain.delete("Namespace/quorate-system");
  const rendered = render();
  assert.deepEqual([...rendered.keys()].sort(), [...plain.keys()].sort());
  for (const [name, wanted] of plain) {
    if (name.startsWith("Deployment")) continue;
    const found = rendered.get(name)! as { metadata: { annotations?: unknown } };
    if (name.startsWith("CustomResource")) delete found.metadata.annotations;
    assert.deepEqual(found, wanted, name);
  }
  const podOf = (objects: typeof plain) =>
    (objects.get("Deployment/quorate-operator") as unknown as Manifest).spec.template.spec;
  const [own, theirs] = [podOf(rendered), podOf(plain)];
  const { args, ...container } = own.containers[0];
  assert.deepEqual(args, [...theirs.containers[0].args!, "--namespace="]);
  const { args: _plainArgs, ...plainContainer } = theirs.containers[0];
  assert.deepEqual(container, plainContainer);
  const changed = podOf(render("--set=image.tag=2,watchNamespace=a,nodeSelector.disk=nvme"));
  assert.equal(changed.containers[0].image, "quorate:2");
  assert.ok(changed.containers[0].args!.includes("--namespace=a"));
  assert.deepEqual((changed as { nodeSelector?: object }).nodeSelector, { disk: "nvme" });
  assert.notEqual(run("template", "o", operator, version, "--set=replica=2").status, 0);
});

test("the bundle has the definitions that its version owns, and the rights of the manifest", () => {
  const dir = join(deploy, "olm/manifests");
  const all = byName(
    readdirSync(dir)
      .map((name) => `---\n${readFileSync(join(dir, name), "utf8")}`)
      .join(""),
  );
  const [version] = [...all].filter(([name]) => name.startsWith("ClusterServiceVersion/"));
  const { spec } = version[1] as unknown as {
    spec: {
      customresourcedefinitions: { owned: { name: string }[] };
      install: { spec: { clusterPermissions: { rules: object[] }[] } };
    };
  };
  const owned = spec.customresourcedefinitions.owned.map(({ name }) => name);
  const defined = [...all.keys()].filter((name) => name.startsWith("CustomResourceDefinition/"));
  assert.deepEqual(defined.map((name) => name.split("/")[1]).sort(), owned.sort());
  assert.equal(owned.length, 4);
  const plain = byName(readFileSync(join(deploy, "kubernetes/operator.yaml"), "utf8"));
  const { rules } = plain.get("ClusterRole/quorate-operator") as { rules?: object[] };
  assert.deepEqual(spec.install.spec.clusterPermissions[0].rules, rules);
  const { annotations } = parse(
    readFileSync(join(deploy, "olm/metadata/annotations.yaml"), "utf8"),
  ) as { annotations: Record<string, string> };
  const labels = readFileSync(join(deploy, "olm/Containerfile"), "utf8");
  for (const [name, value] of Object.entries(annotations))
    assert.ok(labels.includes(`LABEL ${name}=${value}\n`), name);
});

/**
 * The flags of /etc/kubernetes/manifests/etcd.yaml, as kubeadm orders them. Which ones those of the
 * features are depends on its etcd.
 */
function kubeadmFlags(
  name: string,
  dir: string,
  urls: Record<"clients" | "client" | "peer" | "metrics", string>,
  features: string[],
) {
  const pki = (file: string) => join(dir, "pki", file);
  return [
    `--advertise-client-urls=${urls.client}`,
    `--cert-file=${pki("server.pem")}`,
    "--client-cert-auth=true",
    `--data-dir=${join(dir, "data")}`,
    ...features,
    `--initial-advertise-peer-urls=${urls.peer}`,
    `--initial-cluster=${name}=${urls.peer}`,
    `--key-file=${pki("server-key.pem")}`,
    `--listen-client-urls=${urls.clients}`,
    `--listen-metrics-urls=${urls.metrics}`,
    `--listen-peer-urls=${urls.peer}`,
    `--name=${name}`,
    `--peer-cert-file=${pki("peer.pem")}`,
    "--peer-client-cert-auth=true",
    `--peer-key-file=${pki("peer-key.pem")}`,
    `--peer-trusted-ca-file=${pki("ca.pem")}`,
    "--snapshot-count=10000",
    `--trusted-ca-file=${pki("ca.pem")}`,
  ];
}

/** The flags that kubeadm passes to the etcd of its time, and where it probes it. */
const KUBEADM: readonly (readonly [release: string, features: string[], probes: string[]])[] = [
  [
    "1.29, etcd 3.5",
    [
      "--experimental-initial-corrupt-check=true",
      "--experimental-watch-progress-notify-interval=5s",
    ],
    ["/health?exclude=NOSPACE&serializable=true", "/health?serializable=false"],
  ],
  [
    "1.34, etcd 3.6",
    ["--feature-gates=InitialCorruptCheck=true", "--watch-progress-notify-interval=5s"],
    ["/livez", "/readyz"],
  ],
];

test("the static pod has kubeadm's flags, and the files that they name are on the node", () => {
  const text = readFileSync(join(deploy, "kubernetes/static-pod.yaml"), "utf8");
  const pod = parse(text) as {
    spec: {
      containers: { command: string[]; volumeMounts: { name: string; mountPath: string }[] }[];
      volumes: { name: string; hostPath: { path: string } }[];
    };
  };
  const [{ command, volumeMounts }] = pod.spec.containers;
  assert.equal(command[0], "etcd");
  const urls = { clients: "", client: "", peer: "", metrics: "" };
  const nameOf = (flag: string): string => flag.split("=")[0];
  const wanted = kubeadmFlags("node", "/", urls, KUBEADM[1][1]);
  assert.deepEqual(command.slice(1).map(nameOf).sort(), wanted.map(nameOf).sort());
  const mounted = volumeMounts.map(({ mountPath }) => mountPath);
  for (const flag of command.slice(1)) {
    const [, path] = /=(\/.*)/.exec(flag) ?? [];
    if (path !== undefined)
      assert.ok(
        mounted.some((dir) => path === dir || path.startsWith(`${dir}/`)),
        flag,
      );
  }
  for (const { name, mountPath } of volumeMounts)
    assert.equal(pod.spec.volumes.find((one) => one.name === name)?.hostPath.path, mountPath);
});

test("the image sets no variable of a flag, which would be refused beside the flag", () => {
  const image = readFileSync(join(deploy, "Containerfile"), "utf8");
  assert.match(image, /^ENTRYPOINT/m);
  assert.doesNotMatch(image, /^ENV .*ETCD_/m);
  for (const name of ["etcd", "etcdctl", "etcdutl"])
    assert.ok(image.includes(` /usr/local/bin/${name}`), name);
});

/** What an operator of etcd starts an image with, and where it is asked whether it is well. */
interface OtherOperator {
  readonly whose: string;
  readonly peerScheme: "http" | "https";
  readonly flags: (dataDir: string, metricsUrl: string) => string[];
  readonly env: (dataDir: string) => Readonly<Record<string, string>>;
  readonly probes: readonly string[];
}

const OPERATORS: readonly OtherOperator[] = [
  {
    whose: "etcd-io's",
    peerScheme: "http",
    flags: () => [],
    env: (dataDir) => ({ ETCD_DATA_DIR: dataDir }),
    probes: [],
  },
  {
    whose: "cozystack's",
    peerScheme: "https",
    flags: (dataDir, metricsUrl) => [
      `--data-dir=${dataDir}`,
      `--listen-metrics-urls=${metricsUrl}`,
      "--peer-auto-tls",
      "--auto-compaction-retention=5m",
      "--snapshot-count=10000",
      "--quota-backend-bytes=3865470566",
    ],
    env: () => ({ ETCD_INITIAL_CLUSTER_TOKEN: "db-default" }),
    probes: ["/readyz?serializable=false", "/readyz", "/livez"],
  },
];

for (const { whose, peerScheme, flags, env, probes } of OPERATORS) {
  test(`a member starts as ${whose} operator starts it, and is well where that looks`, async (t) => {
    const dir = scratchDirectory("quorate-operators-", t);
    const [client, peer, metrics] = await freePorts(3);
    const peerUrl = `${peerScheme}://127.0.0.1:${peer}`;
    const clientUrl = `http://127.0.0.1:${client}`;
    const metricsUrl = `http://127.0.0.1:${metrics}`;
    const dataDir = join(dir, "default.etcd");
    const member = new TestMember({
      name: "db-0",
      command: quorate.command,
      flags: [
        "--name=db-0",
        `--listen-peer-urls=${peerUrl}`,
        `--listen-client-urls=${clientUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--advertise-client-urls=${clientUrl}`,
        ...flags(dataDir, metricsUrl),
      ],
      env: {
        ETCD_INITIAL_CLUSTER: `db-0=${peerUrl}`,
        ETCD_INITIAL_CLUSTER_STATE: "new",
        ...env(dataDir),
      },
      clientUrl,
      peerUrl,
      dataDir,
      logFile: join(dir, "log"),
      identity: {},
    });
    t.after(() => member.kill());
    member.start();
    const urls = [`${clientUrl}/health`, ...probes.map((probe) => `${metricsUrl}${probe}`)];
    for (const url of urls)
      await until(`${url} is well`, async () => {
        const answer = await request(url).catch(() => undefined);
        await answer?.body.dump();
        return answer?.statusCode === 200;
      });
  });
}

for (const [release, features, probes] of KUBEADM) {
  test(`a manifest as kubeadm ${release} writes it starts a member that its probes find well`, async (t) => {
    const dir = scratchDirectory("quorate-kubeadm-", t);
    const certs = await writeCertificates(join(dir, "pki"));
    const [client, peer, metrics] = await freePorts(3);
    const urls = {
      // The node's own address beside the local one.
      clients: `https://127.0.0.1:${client},https://127.0.0.2:${client}`,
      client: `https://127.0.0.1:${client}`,
      peer: `https://127.0.0.1:${peer}`,
      metrics: `http://127.0.0.1:${metrics}`,
    };
    const read = (path: string) => readFileSync(path, "utf8");
    const member = new TestMember({
      name: "control-plane",
      command: quorate.command,
      flags: kubeadmFlags("control-plane", dir, urls, features),
      env: {},
      clientUrl: urls.client,
      peerUrl: urls.peer,
      dataDir: join(dir, "data"),
      logFile: join(dir, "log"),
      identity: { ca: read(certs.ca), cert: read(certs.client), key: read(certs.clientKey) },
    });
    t.after(() => member.kill());
    member.start();
    for (const probe of probes) {
      await until(`${probe} is well`, async () => {
        const answer = await request(`${urls.metrics}${probe}`).catch(() => undefined);
        await answer?.body.dump();
        return answer?.statusCode === 200;
      });
    }
    const { body } = await request(`${urls.metrics}/metrics`);
    assert.match(
      await body.text(),
      /^etcd_server_feature_enabled\{name="InitialCorruptCheck",stage="ALPHA"\} 1$/m,
    );
  });
}
