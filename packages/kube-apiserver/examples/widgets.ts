/**
 * A test's own API server: a resource in TypeScript, one object, and what a client sees of it.
 *
 *     node packages/kube-apiserver/examples/widgets.ts
 */
import assert from "node:assert/strict";
import { defineResource, shapes } from "@quorate/kube-apiserver";
import { startApiServer } from "@quorate/kube-apiserver/node";

const { integer, record, text } = shapes;

const widgets = defineResource({
  group: "example.org",
  version: "v1",
  kind: "Widget",
  fields: { spec: record({ size: integer(), colour: text() }) },
});

await using api = await startApiServer({ resources: [widgets] });

const path = "/apis/example.org/v1/namespaces/default/widgets";
const made = await api.request(path, {
  body: {
    apiVersion: "example.org/v1",
    kind: "Widget",
    metadata: { name: "one" },
    spec: { size: 3, colour: "red" },
  },
});
assert.equal(made.status, 201);
const wrong = await api.request(path, {
  body: {
    apiVersion: "example.org/v1",
    kind: "Widget",
    metadata: { name: "two" },
    spec: { size: "large", colour: "red" },
  },
});
console.log(wrong.status, wrong.body.message);
const list = await api.request(path);
console.log(list.body.items.length, "widget, kubeconfig:", api.kubeconfigPath);
