/** What admission keeps in memory, and owner references that need permissions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import type { KubeObject } from "@quorate/kube-storage";
import type { AdmissionAttributes } from "../../src/admission/admission.ts";
import { MAX_LIVE_LOOKUPS, namespaceLifecycle } from "../../src/admission/namespace-lifecycle.ts";
import { ownerReferencesPermission } from "../../src/admission/owner-references.ts";
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
