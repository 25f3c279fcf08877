/** The objects that a server makes at its start are kube-apiserver's, and are kept as there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ensureDefaultObjects } from "../../src/controllers/default-objects.ts";
import { ApiWorld } from "../support/api-world.ts";
import { defaultsOf, keptDefaults, withOurs } from "./defaults/defaults.ts";

test("FlowSchemas, levels and classes are those of kube-apiserver 1.36", async () => {
  assert.equal(await withOurs(defaultsOf), keptDefaults());
});

test("What is mandatory comes back; a suggestion is left to who takes it over", async (t) => {
  const world = await ApiWorld.open(t);
  const { client } = world.plane;
  await ensureDefaultObjects(client, 0);
  const root = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
  const change = async (name: string, mark: string | undefined) => {
    const object = await world.ok(`${root}/${name}`);
    object.spec.matchingPrecedence = 77;
    object.metadata.annotations = { "apf.kubernetes.io/autoupdate-spec": mark };
    await world.ok(`${root}/${name}`, { method: "PUT", body: object });
  };
  await change("exempt", "false");
  await change("probes", "true");
  await change("system-nodes", "false");
  await change("kube-scheduler", undefined);
  await world.ok(`${root}/catch-all`, { method: "DELETE" });
  await ensureDefaultObjects(client, 0);
  const now: Record<string, unknown> = {};
  for (const name of ["exempt", "probes", "system-nodes", "kube-scheduler", "catch-all"]) {
    const { metadata, spec } = await world.ok(`${root}/${name}`);
    const mark = metadata.annotations["apf.kubernetes.io/autoupdate-spec"];
    now[name] = [spec.matchingPrecedence, mark];
  }
  assert.deepEqual(now, {
    exempt: [1, "true"],
    probes: [2, "true"],
    "system-nodes": [77, "false"],
    "kube-scheduler": [77, "false"],
    "catch-all": [10_000, "true"],
  });
  const { metadata } = await world.ok(root);
  await ensureDefaultObjects(client, 0);
  assert.equal((await world.ok(root)).metadata.resourceVersion, metadata.resourceVersion);
});
