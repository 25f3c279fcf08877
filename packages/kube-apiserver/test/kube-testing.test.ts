/** What tests of controllers get from @quorate/kube-testing. One server for all. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type KubeTest, testKube } from "@quorate/kube-apiserver/testing";

const MAPS = "/api/v1/namespaces/default/configmaps";
const definition = (kind: string) => `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${kind.toLowerCase()}s.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: ${kind}, plural: ${kind.toLowerCase()}s, singular: ${kind.toLowerCase()}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`;
const CONFIGURATION = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: of-the-test}
webhooks:
- name: maps.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: hooks, namespace: system, path: /validate}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
`;

const home = mkdtempSync(join(tmpdir(), "quorate-kube-testing-"));
const pages = createServer((_request, response) => response.end(definition("Gadget")));
let kube: KubeTest;
before(async () => {
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  const { port } = pages.address() as AddressInfo;
  writeFileSync(join(home, "widgets.yaml"), `---\n${definition("Widget")}---\n`);
  writeFileSync(join(home, "hooks.yaml"), CONFIGURATION);
  kube = await testKube({ definitions: [home, `http://127.0.0.1:${port}/gadgets.yaml`] });
});
after(async () => {
  await kube?.stop();
  pages.close();
  rmSync(home, { recursive: true });
});

const map = (name: string, data = {}) => ({
  body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data },
});

test("definitions come from directories and URLs, and are served at once", async () => {
  for (const plural of ["widgets", "gadgets"])
    assert.deepEqual((await kube.request(`/apis/example.org/v1/${plural}`)).items, []);
  await assert.rejects(kube.define(join(home, "hooks.yaml")), /no CustomResourceDefinition is in/);
});

test("a reset brings all objects back, changed, deleted and new ones", async () => {
  for (const name of ["changed", "deleted"]) await kube.request(MAPS, map(name, { a: "1" }));
  await kube.mark("two maps");
  const { metadata } = await kube.request(`${MAPS}/deleted`);
  const change = async () => {
    await kube.request(`${MAPS}/changed`, { method: "PUT", ...map("changed", { a: "2" }) });
    await kube.request(`${MAPS}/deleted`, { method: "DELETE" });
    await kube.request(MAPS, map("new"));
    await kube.request("/api/v1/namespaces", {
      body: { apiVersion: "v1", kind: "Namespace", metadata: { name: "new" } },
    });
  };
  for (let times = 0; times < 2; times++) {
    await change();
    await kube.reset("two maps");
    assert.equal((await kube.request(`${MAPS}/changed`)).data.a, "1");
    assert.equal((await kube.request(`${MAPS}/deleted`)).metadata.uid, metadata.uid);
    for (const path of [`${MAPS}/new`, "/api/v1/namespaces/new"])
      await assert.rejects(kube.request(path), /404 .* not found$/);
  }
  await kube.reset();
  await assert.rejects(kube.request(`${MAPS}/changed`), /not found/);
  assert.deepEqual((await kube.request("/apis/example.org/v1/widgets")).items, []);
  await assert.rejects(kube.reset("unknown"), /no point is marked as "unknown"/);
});

test("a snapshot is the same in each run", async () => {
  await kube.request(MAPS, map("shown", { a: "1" }));
  const text = `apiVersion: v1
data:
  a: "1"
kind: ConfigMap
metadata:
  name: shown
  namespace: default
`;
  assert.equal(await kube.snapshot(`${MAPS}/shown`), text);
  assert.ok((await kube.snapshot(MAPS)).includes(text.slice(0, 20)));
  await kube.reset();
});

test("a wait in vain says what was seen last", async () => {
  await kube.request(MAPS, map("seen", { a: "1" }));
  const waited = { what: "a is 2", timeoutMs: 50 };
  await assert.rejects(
    kube.until(`${MAPS}/seen`, ({ data }) => data.a === "2", waited),
    /not within 50 ms: a is 2\. .*configmaps\/seen was last:\n(?:.*\n)* {2}a: "1"\n/,
  );
  await assert.rejects(kube.untilGone(`${MAPS}/seen`, { timeoutMs: 50 }), /it is gone/);
  await kube.reset();
  await kube.untilGone(`${MAPS}/seen`);
});

test("webhooks of a test are called on its port, by its certificate", async () => {
  const hooks = createHttpsServer((request, response) => {
    let text = "";
    request.on("data", (piece) => {
      text += piece;
    });
    request.on("end", () => {
      const { uid } = JSON.parse(text).request;
      const status = { message: `refused at ${request.url}` };
      const review = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview" };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...review, response: { uid, allowed: false, status } }));
    });
  });
  await new Promise<void>((resolve) => hooks.listen(0, "127.0.0.1", resolve));
  const { port } = hooks.address() as AddressInfo;
  hooks.setSecureContext(await kube.webhooks(port, join(home, "hooks.yaml")));
  await kube
    .request(MAPS, map("hooked"))
    .then(assert.fail, ({ message }) => assert.match(message, /refused at \/validate/));
  await kube.reset();
  await kube.request(MAPS, map("hooked"));
  hooks.close();
});
