/** Kinds of certificates.k8s.io and storagemigration.k8s.io that Kubernetes 1.37 serves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiWorld } from "../support/api-world.ts";

const CERTIFICATES = "/apis/certificates.k8s.io/v1";
const BUNDLES = `${CERTIFICATES}/clustertrustbundles`;
const SIGNER = "example.com/clients";

/** Lets the user do this with signers and bundles. */
async function allow(world: ApiWorld, user: string, verbs: readonly string[], signers: string[]) {
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const rules = [
    {
      verbs: ["*"],
      apiGroups: ["certificates.k8s.io"],
      resources: ["clustertrustbundles", "podcertificaterequests", "podcertificaterequests/status"],
    },
    { verbs, apiGroups: ["certificates.k8s.io"], resources: ["signers"], resourceNames: signers },
  ];
  await world.ok(`${rbac}/clusterroles`, {
    method: "POST",
    body: { metadata: { name: user }, rules },
  });
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: user };
  const subjects = [{ apiGroup: roleRef.apiGroup, kind: "User", name: user }];
  await world.ok(`${rbac}/clusterrolebindings`, {
    method: "POST",
    body: { metadata: { name: user }, roleRef, subjects },
  });
}

async function openWorld(t: { after(task: () => Promise<void>): void }): Promise<ApiWorld> {
  const world = await ApiWorld.open(t);
  await allow(world, "attester", ["attest", "sign"], ["example.com/*"]);
  await allow(world, "other", ["attest", "sign"], ["other.com/*"]);
  return world;
}

test("who says which certificates of a signer are trusted may attest for it", async (t) => {
  const world = await openWorld(t);
  const bundle = (name: string, signerName?: string, trustBundle = "PEM") => ({
    metadata: { name },
    spec: { ...(signerName === undefined ? {} : { signerName }), trustBundle },
  });
  const send = async (user: string, body: unknown, method = "POST", name = "") => {
    const path = name === "" ? BUNDLES : `${BUNDLES}/${encodeURIComponent(name)}`;
    const { status, json } = await world.request(path, { method, body, user, groups: [] });
    return [status, status < 300 ? "" : json.message];
  };
  const name = "example.com:clients:one";
  assert.deepEqual(await send("other", bundle(name, SIGNER)), [
    403,
    `clustertrustbundles.certificates.k8s.io "${name}" is forbidden: ` +
      `user not permitted to attest for signerName "${SIGNER}"`,
  ]);
  assert.deepEqual(await send("attester", bundle(name, SIGNER)), [201, ""]);
  assert.deepEqual(await send("other", bundle("plain")), [201, ""]);
  const changed = bundle(name, SIGNER, "other");
  assert.equal((await send("other", changed, "PUT", name))[0], 403);
  assert.equal((await send("attester", changed, "PUT", name))[0], 200);
  // An update may not take a bundle over for a signer that its user may attest for.
  const taken = await send("other", bundle("plain", "other.com/a"), "PUT", "plain");
  assert.equal(taken[0], 422);
  for (const [wrong, signer, why] of [
    ["a:b", undefined, 'ClusterTrustBundle without signer name must not have ":" in its name'],
    ["a", SIGNER, `ClusterTrustBundle for signerName ${SIGNER} must be named with prefix`],
    ["example.com:clients:A", SIGNER, "a lowercase RFC 1123 subdomain must consist of"],
  ] as const) {
    const [status, message] = await send("attester", bundle(wrong, signer));
    assert.equal(status, 422);
    assert.ok(String(message).includes(why), String(message));
  }
  const selected = await world.ok(
    `${BUNDLES}?fieldSelector=spec.signerName%3D${encodeURIComponent(SIGNER)}`,
  );
  assert.equal(selected.items.length, 1);
});

test("who issues a pod's certificate may sign for the signer that was asked", async (t) => {
  const world = await openWorld(t);
  const path = `${CERTIFICATES}/namespaces/default/podcertificaterequests`;
  const spec = {
    signerName: SIGNER,
    podName: "p",
    podUID: "1",
    serviceAccountName: "default",
    serviceAccountUID: "2",
    nodeName: "n",
    nodeUID: "3",
    stubPKCS10Request: "AAAA",
  };
  const made = await world.ok(path, { method: "POST", body: { metadata: { name: "r" }, spec } });
  const issued = { ...made, status: { certificateChain: "PEM" } };
  const update = (user: string, target: string, body: unknown) =>
    world.request(`${path}/r${target}`, { method: "PUT", body, user, groups: [] });
  const refused = await update("other", "/status", issued);
  assert.equal(refused.status, 422);
  assert.match(
    refused.json.message,
    /spec.signerName: Forbidden: User "other" is not permitted to "sign" for signer "example.com\/clients"/,
  );
  const other = { ...made, spec: { ...spec, signerName: "other.com/a" } };
  assert.equal((await update("other", "", other)).status, 422);
  assert.equal((await update("other", "/status", made)).status, 200);
  const answered = await update("attester", "/status", issued);
  assert.equal(answered.status, 200);
  assert.equal(answered.json.status.certificateChain, "PEM");
});

test("a migration's resource stays, and its status is told", async (t) => {
  const world = await ApiWorld.open(t);
  const path = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
  const body = {
    metadata: { name: "m" },
    spec: { resource: { group: "apps", resource: "deployments" } },
  };
  const made = await world.ok(path, { method: "POST", body });
  const spec = { resource: { group: "", resource: "pods" } };
  const changed = await world.request(`${path}/m`, { method: "PUT", body: { ...made, spec } });
  assert.equal(changed.status, 422);
  assert.match(changed.json.message, /spec: Invalid value: .*field is immutable/);
  const conditions = [
    { type: "Succeeded", status: "True", reason: "", message: "", lastTransitionTime: null },
  ];
  await world.ok(`${path}/m/status`, { method: "PUT", body: { ...made, status: { conditions } } });
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const { rows } = await world.ok(path, { headers: { accept } });
  assert.deepEqual(rows[0].cells, ["m", "deployments.apps", "Succeeded"]);
});
