/** What admission keeps in memory, and owner references that need permissions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import type { KubeObject } from "@quorate/kube-storage";
import type { AdmissionAttributes } from "../../src/admission/admission.ts";
import { AdmissionChain } from "../../src/admission/chain.ts";
import { MAX_LIVE_LOOKUPS, namespaceLifecycle } from "../../src/admission/namespace-lifecycle.ts";
import { ownerReferencesPermission } from "../../src/admission/owner-references.ts";
import { signerPermissions } from "../../src/admission/signer-permissions.ts";
import type { Authorizer } from "../../src/authz/authorizer.ts";
import { userOf, World } from "./world.ts";

function attributesOf(more: Partial<AdmissionAttributes>): AdmissionAttributes {
  return {
    operation: "CREATE",
    user: userOf("ann"),
    kind: { group: "", version: "v1", kind: "ConfigMap" },
    resource: { group: "", version: "v1", resource: "configmaps" },
    subresource: "",
    namespace: "n",
    name: "c",
    object: undefined,
    oldObject: undefined,
    options: undefined,
    dryRun: false,
    signal: { aborted: false, reason: undefined, addEventListener() {}, removeEventListener() {} },
    warn() {},
    ...more,
  };
}

test("after a deletion the namespace is read from the store for a while, of 100 namespaces", async () => {
  const clock = new ManualClock();
  const active = { apiVersion: "v1", kind: "Namespace", metadata: {}, status: { phase: "Active" } };
  let reads = 0;
  const lifecycle = namespaceLifecycle(
    {
      cached: () => active,
      live: async () => {
        reads++;
        return { ...active, status: { phase: "Terminating" } };
      },
    },
    clock,
  );
  const rounds = { isSecond: false, again() {} };
  const remove = (name: string) =>
    lifecycle.mutate!(
      attributesOf({
        operation: "DELETE",
        kind: { group: "", version: "v1", kind: "Namespace" },
        resource: { group: "", version: "v1", resource: "namespaces" },
        name,
        namespace: name,
      }),
      rounds,
    );
  const create = (namespace: string) => lifecycle.mutate!(attributesOf({ namespace }), rounds);
  await create("first");
  assert.equal(reads, 0);
  await remove("first");
  await assert.rejects(create("first"), /because it is being terminated$/);
  assert.equal(reads, 1);
  clock.advance(30_001);
  await create("first");
  assert.equal(reads, 1);
  await remove("first");
  for (let i = 0; i < MAX_LIVE_LOOKUPS; i++) await remove(`other-${i}`);
  await create("first");
  assert.equal(reads, 1);
  await assert.rejects(create("other-0"), /being terminated/);
});

test("who sets an owner may delete the object, and who blocks an owner may finalize it", async () => {
  const world = new World(new ManualClock());
  const allowed = new Set<string>();
  const authorizer: Authorizer = {
    authorize: async ({ verb, resource, subresource }) => {
      const what = `${verb} ${resource}${subresource === "" ? "" : `/${subresource}`}`;
      return { decision: allowed.has(what) ? "allow" : "no-opinion", reason: "" };
    },
  };
  const plugin = ownerReferencesPermission(authorizer, world);
  const withOwner = (blockOwnerDeletion: boolean, kind = "Secret"): KubeObject => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "c",
      ownerReferences: [{ apiVersion: "v1", kind, name: "s", uid: "u", blockOwnerDeletion }],
    },
  });
  const bare: KubeObject = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } };
  const update = (object: KubeObject, oldObject = bare) =>
    plugin.validate!(attributesOf({ operation: "UPDATE", object, oldObject }));
  await plugin.validate!(attributesOf({ object: withOwner(false) }));
  await assert.rejects(
    update(withOwner(false)),
    /configmaps "c" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>$/,
  );
  allowed.add("delete configmaps");
  await update(withOwner(false));
  await assert.rejects(
    update(withOwner(true)),
    /cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on/,
  );
  await assert.rejects(
    update(withOwner(true, "Widget")),
    /cannot find RESTMapping for APIVersion v1 Kind Widget/,
  );
  allowed.add("update secrets/finalizers");
  await update(withOwner(true));
  allowed.clear();
  await update(withOwner(true), withOwner(true));
});

test("who approves a certificate, or signs it, may do that for its signer or its whole domain", async () => {
  const allowed = new Set<string>();
  const asked: string[] = [];
  const authorizer: Authorizer = {
    authorize: async ({ verb, group, resource, name }) => {
      asked.push(`${verb} ${resource}.${group} ${name}`);
      return { decision: allowed.has(`${verb} ${name}`) ? "allow" : "no-opinion", reason: "" };
    },
  };
  const plugin = signerPermissions(authorizer);
  const csr = (status: unknown, signerName = "example.com/clients"): KubeObject => ({
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name: "csr" },
    spec: { signerName },
    status,
  });
  const resource = {
    group: "certificates.k8s.io",
    version: "v1",
    resource: "certificatesigningrequests",
  };
  const update = (subresource: string, object: KubeObject, oldObject = csr({})) =>
    plugin.validate!(
      attributesOf({ operation: "UPDATE", resource, subresource, name: "csr", object, oldObject }),
    );
  const approved = csr({ conditions: [{ type: "Approved" }] });
  await assert.rejects(
    update("approval", approved),
    /"csr" is forbidden: user not permitted to approve requests with signerName "example.com\/clients"$/,
  );
  assert.deepEqual(asked, [
    "approve signers.certificates.k8s.io example.com/clients",
    "approve signers.certificates.k8s.io example.com/*",
  ]);
  // Another signer in the update is not the one that is asked for.
  allowed.add("approve other.com/clients");
  await assert.rejects(
    update("approval", csr({}, "other.com/clients")),
    /approve requests with signerName "example.com\/clients"/,
  );
  allowed.add("approve example.com/*");
  await update("approval", approved);
  const signed = csr({ certificate: "AA==" });
  await assert.rejects(update("status", signed), /not permitted to sign requests/);
  await update("status", csr({}));
  allowed.add("sign example.com/clients");
  await update("status", signed);
  await update("", signed);
});

test("a plug-in is asked about its own resources only, and not while it has nothing to judge by", async () => {
  const asked: string[] = [];
  let isIdle = true;
  const note = (name: string) => ({ validate: async () => void asked.push(name) });
  const chain = new AdmissionChain([
    { resources: ["/pods"], ...note("for pods") },
    { isIdle: () => isIdle, ...note("idle at first") },
    note("for all"),
  ]);
  const ask = async (resource: string, subresource = ""): Promise<readonly string[]> => {
    asked.length = 0;
    const of = { group: "", version: "v1", resource };
    await chain.validate(attributesOf({ resource: of, subresource }));
    return [...asked];
  };
  assert.deepEqual(await ask("configmaps"), ["for all"]);
  assert.deepEqual(await ask("pods", "resize"), ["for pods", "for all"]);
  isIdle = false;
  chain.refresh();
  assert.deepEqual(await ask("configmaps"), ["idle at first", "for all"]);
  assert.deepEqual(await ask("pods"), ["for pods", "idle at first", "for all"]);
});
