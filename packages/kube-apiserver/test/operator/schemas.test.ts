/** The kinds of the operator on the API server: what schemas and rules take, fill in, refuse. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { definitions } from "@quorate/operator";
import { ApiWorld, type Received } from "../support/api-world.ts";

const GROUP = "/apis/quorate.dev/v1alpha1/namespaces/default";
const spec = { size: 3, image: "quorate:1", storage: { size: "1Gi" } };
let world: ApiWorld;

before(async () => {
  world = await ApiWorld.open({ after });
  for (const body of definitions())
    await world.ok("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      method: "POST",
      body,
    });
});

function send(kind: string, name: string, fields: object): Promise<Received> {
  const plural = `${kind.toLowerCase()}s`;
  const apiVersion = "quorate.dev/v1alpha1";
  const body = { apiVersion, kind, metadata: { name }, spec: fields };
  return world.request(`${GROUP}/${plural}`, { method: "POST", body });
}

async function refused(kind: string, fields: object, why: RegExp, name = "x"): Promise<void> {
  const { status, text } = await send(kind, name, fields);
  assert.equal(status, 422, text);
  assert.match(text, why);
}

test("a cluster is filled in, and its wrong forms are refused", async () => {
  const { status, json } = await send("QuorateCluster", "db", spec);
  assert.equal(status, 201);
  assert.deepEqual(json.spec, {
    ...spec,
    storage: { size: "1Gi", onDelete: "Keep" },
    recovery: "manual",
    replaceAfterSeconds: 300,
    certificates: { validDays: 90 },
    users: false,
  });
  await refused("QuorateCluster", { ...spec, size: 4 }, /Unsupported value: 4/);
  await refused("QuorateCluster", { ...spec, flags: { name: "x" } }, /operator sets one of these/);
  await refused("QuorateCluster", spec, /at most 40 characters/, "x".repeat(41));
  await refused("QuorateCluster", { ...spec, storage: { size: "much" } }, /should match/);
  const storage = { size: "2Gi", storageClassName: "fast", onDelete: "Keep" };
  const put = { method: "PUT", body: { ...json, spec: { ...json.spec, storage } } };
  const answer = await world.request(`${GROUP}/quorateclusters/db`, put);
  assert.equal(answer.status, 422);
  assert.match(answer.text, /keep their class/);
});

test("kubectl scale works: the size is the scale", async () => {
  await send("QuorateCluster", "scaled", spec);
  const path = `${GROUP}/quorateclusters/scaled/scale`;
  const scale = await world.ok(path);
  assert.equal(scale.spec.replicas, 3);
  await world.ok(path, { method: "PUT", body: { ...scale, spec: { replicas: 5 } } });
  assert.equal((await world.ok(`${GROUP}/quorateclusters/scaled`)).spec.size, 5);
});

test("backups, restores and users: one way each, and none out of its place", async () => {
  const backup = { cluster: "db", claim: "c" };
  await refused("QuorateBackup", backup, /either continuous or scheduled/);
  const both = { ...backup, continuous: {}, scheduled: { every: "1h" } };
  await refused("QuorateBackup", both, /either continuous or scheduled/);
  const outside = { ...backup, path: "a/../../b", continuous: {} };
  await refused("QuorateBackup", outside, /must stay in the claim/);
  assert.equal((await send("QuorateBackup", "b", { ...backup, continuous: {} })).status, 201);
  const from = { claim: "c", path: "../x" };
  await refused("QuorateRestore", { cluster: "db", from }, /must stay in the claim/);
  const restore = { cluster: "db", from: { claim: "c", path: "b" } };
  const made = await send("QuorateRestore", "r", restore);
  assert.equal(made.json.spec.bumpRevision, 1_000_000_000);
  const changed = { ...made.json, spec: { ...made.json.spec, bumpRevision: 1 } };
  const put = { method: "PUT", body: changed };
  assert.equal((await world.request(`${GROUP}/quoraterestores/r`, put)).status, 422);
  const user = { cluster: "db", passwordSecret: { name: "s" } };
  await refused("QuorateUser", { ...user, username: "root" }, /root is the operator's/);
  const nothing = { ...user, permissions: [{ access: "read", key: "" }] };
  await refused("QuorateUser", nothing, /a key, or all by prefix/);
  assert.equal((await send("QuorateUser", "u", user)).status, 201);
});
