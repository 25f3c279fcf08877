/** OpenAPI documents of a small set of resources. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Turns } from "@quorate/host";
import {
  kindSource,
  type RestStorage,
  type Schema,
  type ServedResource,
} from "@quorate/kube-storage";
import { Reader, toUtf8 } from "@quorate/proto";
import { OpenApiDocuments, type OpenApiPage } from "../../src/openapi/openapi-documents.ts";

const never = async (): Promise<never> => {
  throw new Error("not called");
};
const ALL: RestStorage = {
  get: never,
  list: never,
  create: never,
  update: never,
  delete: never,
  deleteCollection: never,
};

function served(
  group: string,
  resource: string,
  kind: string,
  own: Partial<ServedResource> = {},
): ServedResource {
  const names = { singular: kind.toLowerCase(), shortNames: [], categories: [] };
  return {
    group,
    version: "v1",
    resource,
    subresource: "",
    kind: { group, version: "v1", kind },
    ...names,
    namespaced: true,
    storage: ALL,
    table: undefined,
    strategicMerge: true,
    storageVersionHash: "",
    deprecationWarning: undefined,
    decode: () => assert.fail(),
    convert: async (objects) => objects,
    schema: undefined,
    protobuf: undefined,
    ...own,
  };
}

function builtin(group: string, resource: string, kind: string): ServedResource {
  const { schema, protobuf } = kindSource(group, "v1", kind);
  return served(group, resource, kind, { schema, protobuf });
}

const WIDGET: Schema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      required: ["size"],
      properties: {
        size: { type: "integer", minimum: 1, default: 3, nullable: true },
        port: { "x-kubernetes-int-or-string": true },
        any: {
          type: "object",
          properties: { known: { type: "string" } },
          "x-kubernetes-preserve-unknown-fields": true,
        },
        anyOf: { type: "string", anyOf: [{ pattern: "a" }] },
        template: {
          type: "object",
          required: ["kind"],
          "x-kubernetes-embedded-resource": true,
        },
      },
    },
  },
  "x-kubernetes-selectable-fields": [{ fieldPath: "spec.size" }],
};

function widgets(): ServedResource {
  const kind = { group: "example.org", version: "v1", kind: "Widget" };
  return served("example.org", "widgets", "Widget", {
    schema: { kind, schema: WIDGET },
    strategicMerge: false,
  });
}

/** Documents over resources that the test changes. */
function documentsOf(resources: ServedResource[]) {
  const listeners: (() => void)[] = [];
  let turns = 0;
  let nowMs = 0;
  const documents = new OpenApiDocuments(
    {
      all: () => [...resources],
      find: () => undefined,
      hasBuiltIns: () => true,
      onChange: (listener) => {
        listeners.push(listener);
        return () => {};
      },
    },
    { versions: [], onChange: (listener) => void listeners.push(listener) },
    {
      turns: new Turns({
        monotonicMs: () => nowMs++,
        endOfTurn: (run) => {
          turns++;
          queueMicrotask(run);
        },
      }),
    },
  );
  const changed = () => {
    for (const listener of listeners) listener();
  };
  return { documents, changed, turns: () => turns };
}

// biome-ignore lint/suspicious/noExplicitAny: the tests look into documents of any form
function parsed(page: OpenApiPage | undefined): any {
  return JSON.parse(toUtf8(page!.bytes));
}

const SCALE = kindSource("autoscaling", "v1", "Scale");
const setOfResources = (): ServedResource[] => [
  builtin("", "configmaps", "ConfigMap"),
  { ...builtin("", "namespaces", "Namespace"), namespaced: false },
  widgets(),
  served("example.org", "opens", "Open", {
    schema: {
      kind: { group: "example.org", version: "v1", kind: "Open" },
      schema: { ...WIDGET, "x-kubernetes-preserve-unknown-fields": true },
    },
    strategicMerge: false,
  }),
  {
    ...widgets(),
    subresource: "scale",
    kind: SCALE.kind,
    schema: SCALE.schema,
    storage: { get: never, update: never },
  },
];

describe("OpenAPI v3", () => {
  const { documents, changed, turns } = documentsOf(setOfResources());

  it("has an index with a hash for each group and version", async () => {
    const { paths } = parsed(await documents.index());
    assert.deepEqual(Object.keys(paths), ["api/v1", "apis/example.org/v1"]);
    const page = await documents.v3("api/v1");
    assert.equal(paths["api/v1"].serverRelativeURL, `/openapi/v3/api/v1?hash=${page?.hash}`);
  });

  it("has the operations with the parameters that kubectl looks for", async () => {
    const { paths } = parsed(await documents.v3("api/v1"));
    const item = paths["/api/v1/namespaces/{namespace}/configmaps/{name}"];
    assert.equal(item.patch["x-kubernetes-action"], "patch");
    assert.deepEqual(item.patch["x-kubernetes-group-version-kind"], {
      group: "",
      version: "v1",
      kind: "ConfigMap",
    });
    const names = item.patch.parameters.map(({ name }: { name: string }) => name);
    assert.deepEqual(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    const types = Object.keys(item.patch.requestBody.content);
    assert.ok(types.includes("application/strategic-merge-patch+json"));
    assert.equal(item.patch.operationId, "patchCoreV1NamespacedConfigMap");
    assert.ok(paths["/api/v1/configmaps"].get);
    assert.ok(paths["/api/v1/namespaces/{name}"].delete);
  });

  it("has shared schemas with the facts of the tables", async () => {
    const { schemas } = parsed(await documents.v3("api/v1")).components;
    const { properties } = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"];
    assert.equal(properties.ownerReferences["x-kubernetes-patch-merge-key"], "uid");
    assert.deepEqual(properties.creationTimestamp.allOf, [
      { $ref: "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time" },
    ]);
    const kinds = schemas["io.k8s.api.core.v1.ConfigMapList"]["x-kubernetes-group-version-kind"];
    assert.deepEqual(kinds, [{ group: "", kind: "ConfigMapList", version: "v1" }]);
    const references = JSON.stringify(schemas).matchAll(/#\/components\/schemas\/([^"]+)/g);
    for (const [, name] of references) assert.ok(schemas[name], name);
  });

  it("has custom kinds with the metadata of all objects, and other groups' subresources", async () => {
    const { info, security, components, paths } = parsed(await documents.v3("apis/example.org/v1"));
    assert.deepEqual(info, { title: "Kubernetes CRD Swagger", version: "v0.1.0" });
    assert.deepEqual([security, components.securitySchemes], [undefined, undefined]);
    const widget = components.schemas["org.example.v1.Widget"];
    assert.deepEqual(widget.properties.metadata.allOf, [
      { $ref: "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" },
    ]);
    assert.match(widget.properties.metadata.description, /metadata/);
    const { size, port, template } = widget.properties.spec.properties;
    assert.equal(size.default, 3);
    assert.deepEqual(port.anyOf, [{ type: "integer" }, { type: "string" }]);
    assert.deepEqual(Object.keys(template.properties).sort(), ["apiVersion", "kind", "metadata"]);
    assert.deepEqual(template.required, ["kind", "apiVersion"]);
    const selectable = [{ fieldPath: "spec.size" }];
    assert.deepEqual(widget["x-kubernetes-selectable-fields"], selectable);
    const list = components.schemas["org.example.v1.WidgetList"];
    assert.equal(list.properties.items.items.$ref, "#/components/schemas/org.example.v1.Widget");
    assert.deepEqual(list["x-kubernetes-selectable-fields"], selectable);
    const item = paths["/apis/example.org/v1/namespaces/{namespace}/widgets/{name}"];
    const types = Object.keys(item.patch.requestBody.content);
    assert.ok(!types.includes("application/strategic-merge-patch+json"));
    const scale = paths["/apis/example.org/v1/namespaces/{namespace}/widgets/{name}/scale"];
    assert.equal(scale.get["x-kubernetes-group-version-kind"].kind, "Scale");
  });

  it("keeps documents of groups that did not change", async () => {
    const before = await documents.v3("api/v1");
    changed();
    assert.equal(await documents.v3("api/v1"), before);
    assert.equal(await documents.v3("apis/nothing/v1"), undefined);
  });

  it("is made in slices", () => {
    assert.ok(turns() > 5, `${turns()} turns`);
  });

  it("follows the resources", async () => {
    const resources = setOfResources();
    const own = documentsOf(resources);
    const before = await own.documents.index();
    resources.push(builtin("coordination.k8s.io", "leases", "Lease"));
    own.changed();
    const after = await own.documents.index();
    assert.notEqual(after.hash, before.hash);
    assert.ok(parsed(after).paths["apis/coordination.k8s.io/v1"]);
  });

  it("is made again after a failure", async () => {
    const resources = setOfResources();
    const own = documentsOf(resources);
    const broken = widgets();
    Object.defineProperty(broken, "schema", { get: () => assert.fail("broken") });
    resources.push(broken);
    await assert.rejects(own.documents.v2("json"));
    await assert.rejects(own.documents.index());
    resources.pop();
    assert.ok(parsed(await own.documents.v2("json")).paths);
    assert.ok(parsed(await own.documents.index()).paths);
  });
});

/** The fields of a protobuf message: [number, bytes or number]. */
function fieldsOf(bytes: Uint8Array): [number, Uint8Array][] {
  const reader = new Reader(bytes);
  const found: [number, Uint8Array][] = [];
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if ((tag & 7) === 2) found.push([tag >>> 3, reader.view()]);
    else reader.skip(tag, {});
  }
  return found;
}

function only(bytes: Uint8Array, ...path: number[]): Uint8Array[] {
  let found = [bytes];
  for (const number of path)
    found = found.flatMap((each) =>
      fieldsOf(each).flatMap(([at, value]) => (at === number ? [value] : [])),
    );
  return found;
}

describe("OpenAPI v2", () => {
  const { documents } = documentsOf(setOfResources());

  it("has one document for all groups", async () => {
    const { paths, definitions, parameters } = parsed(await documents.v2("json"));
    const item = paths["/api/v1/namespaces/{namespace}/configmaps/{name}"];
    assert.ok(item.patch.parameters.some((each: { name?: string }) => each.name === "dryRun"));
    assert.equal(parameters.fieldManager.in, "query");
    const { properties } = definitions["org.example.v1.Widget"].properties.spec;
    // What v2 cannot say is left out.
    assert.deepEqual(properties.size, { minimum: 1 });
    assert.equal(definitions["org.example.v1.Widget"].properties.spec.required, undefined);
    assert.deepEqual(properties.any, { "x-kubernetes-preserve-unknown-fields": true });
    const open = definitions["org.example.v1.Open"];
    assert.deepEqual(Object.keys(open), ["type", "x-kubernetes-group-version-kind"]);
    assert.deepEqual(properties.anyOf, { type: "string" });
    const text = JSON.stringify({ paths, definitions });
    for (const [, name] of text.matchAll(/#\/definitions\/([^"]+)/g))
      assert.ok(definitions[name], name);
  });

  it("has the same paths, definitions and extensions as protobuf", async () => {
    const json = parsed(await documents.v2("json"));
    const { bytes } = await documents.v2("protobuf");
    const texts = (...path: number[]) => only(bytes, ...path).map((each) => toUtf8(each));
    assert.deepEqual(texts(1), ["2.0"]);
    // Document.paths.path.name, Document.definitions.additional_properties.name
    assert.deepEqual(texts(8, 2, 1), Object.keys(json.paths));
    assert.deepEqual(texts(9, 1, 1), Object.keys(json.definitions));
    assert.deepEqual(texts(10, 1, 1), Object.keys(json.parameters));
    // Of each patch operation: vendor_extension.value.yaml
    const extensions = texts(8, 2, 2, 8, 13, 2, 2).map((each) => JSON.parse(each));
    assert.ok(extensions.some((each) => each.kind === "ConfigMap" && each.version === "v1"));
  });
});
