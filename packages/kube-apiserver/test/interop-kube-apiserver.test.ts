/**
 * A real kube-apiserver and our storage on one member: each reads what the other wrote, the bytes
 * are the same, and our watch sees its writes. Encryption is on, with the same file.
 * @slow
 */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@quorate/client";
import { connect } from "@quorate/client/node";
import { silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import type { GroupVersionKind, KubeObject, ObjectCodec } from "@quorate/kube-storage";
import {
  EtcdStore,
  jsonCodec,
  kindSource,
  LeaseManager,
  parseYaml,
  storedValueText,
} from "@quorate/kube-storage";
import {
  listOptions,
  podAttributes,
  testClock,
  WatchRecorder,
} from "@quorate/kube-storage/testing";
import { toUtf8 } from "@quorate/proto";
import { withCluster } from "../../../test/support/cluster.ts";
import { LibraryCluster } from "../node/cluster.ts";
import { type Encryption, openEncryption } from "../node/encryption/encryption.ts";
import { FakePlugin } from "./kms/fake-plugin.ts";
import { type KubeApi, skipWithoutKubeApi, withKubeApi } from "./support/kube-api.ts";

interface KindCase {
  readonly kind: GroupVersionKind;
  readonly resource: string;
  /** In the store, below the root. */
  readonly storagePrefix: string;
  readonly namespaced: boolean;
  readonly codec?: ObjectCodec;
  /** Besides apiVersion, kind and metadata. */
  readonly fields: Readonly<Record<string, unknown>>;
}

const core = (kind: string) => ({ group: "", version: "v1", kind });
const rbac = (kind: string) => ({ group: "rbac.authorization.k8s.io", version: "v1", kind });
const rules = [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] }];

const cases: readonly KindCase[] = [
  {
    kind: core("ConfigMap"),
    resource: "configmaps",
    storagePrefix: "configmaps",
    namespaced: true,
    fields: { data: { b: "2", a: "<1>" }, binaryData: { raw: "AAEC" } },
  },
  {
    kind: core("Secret"),
    resource: "secrets",
    storagePrefix: "secrets",
    namespaced: true,
    fields: { type: "Opaque", data: { password: "aHVzaA==" } },
  },
  {
    kind: core("ServiceAccount"),
    resource: "serviceaccounts",
    storagePrefix: "serviceaccounts",
    namespaced: true,
    fields: { automountServiceAccountToken: false, secrets: [{ name: "token" }] },
  },
  {
    kind: core("Event"),
    resource: "events",
    storagePrefix: "events",
    namespaced: true,
    fields: {
      involvedObject: { kind: "Pod", namespace: "default", name: "p" },
      reason: "Started",
      message: "it runs",
      type: "Normal",
      count: 2,
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:00:01Z",
      source: { component: "test" },
    },
  },
  {
    kind: { group: "coordination.k8s.io", version: "v1", kind: "Lease" },
    resource: "leases",
    storagePrefix: "leases",
    namespaced: true,
    fields: {
      spec: {
        holderIdentity: "me",
        leaseDurationSeconds: 15,
        renewTime: "2026-01-01T00:00:00.123456Z",
      },
    },
  },
  {
    kind: rbac("Role"),
    resource: "roles",
    storagePrefix: "roles",
    namespaced: true,
    fields: { rules },
  },
  {
    kind: rbac("ClusterRole"),
    resource: "clusterroles",
    storagePrefix: "clusterroles",
    namespaced: false,
    fields: { rules },
  },
  {
    kind: rbac("RoleBinding"),
    resource: "rolebindings",
    storagePrefix: "rolebindings",
    namespaced: true,
    fields: {
      subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "someone" }],
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
    },
  },
  {
    kind: core("Namespace"),
    resource: "namespaces",
    storagePrefix: "namespaces",
    namespaced: false,
    fields: {},
  },
  {
    kind: { group: "example.org", version: "v1", kind: "Widget" },
    resource: "widgets",
    storagePrefix: "example.org/widgets",
    namespaced: true,
    codec: jsonCodec,
    fields: { spec: { z: "<&>", a: 1, list: [{ b: 1.5, a: null }] } },
  },
];

const widgets: KubeObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.example.org" },
  spec: {
    group: "example.org",
    names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
    scope: "Namespaced",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        },
      },
    ],
  },
};

function writeFiles(dir: string): void {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  writeFileSync(join(dir, "sa.key"), privateKey.export({ type: "pkcs1", format: "pem" }));
  writeFileSync(join(dir, "tokens.csv"), "admin-token,admin,1,system:masters\n");
  const kms = { apiVersion: "v2", name: "vault", endpoint: `unix://${join(dir, "kms.sock")}` };
  const keys = [{ name: "k1", secret: Buffer.alloc(32, 5).toString("base64") }];
  writeFileSync(
    join(dir, "encryption.yaml"),
    JSON.stringify({
      apiVersion: "apiserver.config.k8s.io/v1",
      kind: "EncryptionConfiguration",
      resources: [
        { resources: ["secrets"], providers: [{ secretbox: { keys } }] },
        { resources: ["configmaps"], providers: [{ aesgcm: { keys } }, { identity: {} }] },
        { resources: ["leases.coordination.k8s.io"], providers: [{ kms }] },
        { resources: ["widgets.example.org"], providers: [{ aescbc: { keys } }] },
      ],
    }),
  );
}

function pathOf({ kind, resource, namespaced }: KindCase, name: string): string {
  const root = kind.group === "" ? "/api/v1" : `/apis/${kind.group}/${kind.version}`;
  return `${root}${namespaced ? "/namespaces/default" : ""}/${resource}${name === "" ? "" : `/${name}`}`;
}

function keyOf({ storagePrefix, namespaced }: KindCase, name: string): string {
  return `/${storagePrefix}${namespaced ? "/default" : ""}/${name}`;
}

function codecOf({ codec, kind }: KindCase): ObjectCodec {
  return codec ?? kindSource(kind.group, kind.version, kind.kind).codec;
}

function storageOf(one: KindCase, client: Client, encryption: Encryption): EtcdStore {
  const cluster = new LibraryCluster(client);
  const { group } = one.kind;
  return new EtcdStore(
    { kind: one.kind, root: "/registry", resourcePrefix: `/${one.storagePrefix}` },
    {
      client: cluster,
      codec: codecOf(one),
      transformer: encryption.transformerFor({ group, resource: one.resource }),
      attributesOf: podAttributes,
      leases: new LeaseManager(
        (ttl) => cluster.grantLease(ttl),
        () => testClock.monotonicMs(),
      ),
      clock: testClock,
    },
  );
}

function objectOf({ kind, namespaced, fields }: KindCase, name: string): KubeObject {
  return {
    apiVersion: kind.group === "" ? kind.version : `${kind.group}/${kind.version}`,
    kind: kind.kind,
    metadata: {
      name,
      ...(namespaced ? { namespace: "default" } : {}),
      labels: { app: "x", zone: "y" },
      annotations: { note: "a <b> & c" },
    },
    ...fields,
  };
}

/** Kubernetes writes, we read; and what we would write has the same bytes. */
async function readTheirs(one: KindCase, api: KubeApi, client: Client, encryption: Encryption) {
  const created = await api.call("POST", pathOf(one, ""), objectOf(one, "theirs"));
  assert.equal(created.code, 201, JSON.stringify(created.body));
  const storage = storageOf(one, client, encryption);
  const stored = await storage.get(keyOf(one, "theirs"));
  assert.deepEqual(stored!.object(), created.body);

  const storeKey = `/registry${keyOf(one, "theirs")}`;
  const { kvs } = await client.get(storeKey);
  const transformer = encryption.transformerFor({
    group: one.kind.group,
    resource: one.resource,
  });
  const { value } = await transformer.fromStorage(storeKey, kvs[0].value);
  const codec = codecOf(one);
  assert.equal(
    Buffer.from(codec.encode(stored!.object())).toString("latin1"),
    Buffer.from(value).toString("latin1"),
    `other bytes: ${toUtf8(value)}`,
  );
  const { managedFields: __, ...metadata } = created.body.metadata;
  const shown = await parseYaml(await storedValueText(value, kvs[0].modRevision));
  assert.deepEqual(shown.value, { ...created.body, metadata });
}

/** Whatever it wrote at its start is shown, but for what is encrypted. */
async function showAll(client: Client) {
  const { kvs } = await client.get("/registry/", { prefix: true });
  assert.ok(kvs.length > 100, `${kvs.length} objects`);
  let encrypted = 0;
  for (const { key, value, modRevision } of kvs) {
    const text = await storedValueText(value, modRevision);
    if (text.startsWith("# encrypted by ")) encrypted++;
    else assert.match(text, /^kind: \w+$/m, toUtf8(key));
  }
  assert.ok(encrypted > 0);
}

/** We write, Kubernetes reads, changes and deletes; our watch sees both. */
async function writeOurs(one: KindCase, api: KubeApi, client: Client, encryption: Encryption) {
  const storage = storageOf(one, client, encryption);
  const theirs = (await storage.get(keyOf(one, "theirs")))!.object();
  const { resourceVersion: _, ...metadata } = theirs.metadata;
  const object = {
    ...theirs,
    metadata: { ...metadata, name: "ours", uid: "7e1a1b4a-0000-4000-8000-000000000001" },
  };
  const stored = await storage.create(keyOf(one, "ours"), object, 0);
  const got = await api.call("GET", pathOf(one, "ours"));
  assert.equal(got.code, 200, JSON.stringify(got.body));
  assert.deepEqual(got.body, stored.object());

  const list = await api.call("GET", pathOf(one, ""));
  const names = (list.body.items as KubeObject[]).map((item) => item.metadata.name);
  assert.ok(names.includes("ours") && names.includes("theirs"), names.join());
  const watch = new WatchRecorder(
    await storage.watch(
      `/${one.storagePrefix}`,
      listOptions({ resourceVersion: String(stored.resourceVersion) }),
    ),
  );
  const changed = await api.call("PUT", pathOf(one, "ours"), {
    ...got.body,
    metadata: { ...got.body.metadata, labels: { app: "changed" } },
  });
  assert.equal(changed.code, 200, JSON.stringify(changed.body));
  assert.deepEqual((await storage.get(keyOf(one, "ours")))!.object(), changed.body);
  const event = await watch.next();
  assert.deepEqual([event.type, event.object.object()], ["MODIFIED", changed.body]);
  watch.stop();
}

test("a kube-apiserver reads what we wrote, and we read what it wrote", {
  skip: skipWithoutKubeApi,
}, async () => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-kube-"));
  writeFiles(dir);
  const plugin = await new FakePlugin().serve(join(dir, "kms.sock"));
  try {
    await withCluster({ size: 1 }, async (cluster) => {
      const client = connect({ endpoints: cluster.endpoints });
      const encryption = await openEncryption(join(dir, "encryption.yaml"), false, {
        clock: nodeClock,
        logger: silentLogger,
      });
      await withKubeApi(cluster.endpoints[0], dir, async (api) => {
        const crd = {
          group: "apiextensions.k8s.io",
          version: "v1",
          resource: "customresourcedefinitions",
        };
        const crds = `/apis/${crd.group}/${crd.version}/${crd.resource}`;
        const definition = await api.call("POST", crds, widgets);
        assert.equal(definition.code, 201, JSON.stringify(definition.body));
        for (let tries = 0; ; tries++) {
          const { code } = await api.call("GET", "/apis/example.org/v1/namespaces/default/widgets");
          if (code === 200) break;
          assert.ok(tries < 200, "the kind of the definition is not served");
          await delay(100);
        }
        for (const one of cases) {
          await readTheirs(one, api, client, encryption);
          await writeOurs(one, api, client, encryption);
        }
        await showAll(client);
      });
      await encryption.close();
      client.close();
    });
  } finally {
    await plugin.close(0);
    rmSync(dir, { recursive: true, force: true });
  }
});
