/**
 * Bodies and patches with a value of another type in a field, for each served kind: the client
 * gets its error, never "Internal error occurred". The fields are those of the OpenAPI documents.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { ApiWorld } from "../support/api-world.ts";

type Anything = Record<string, unknown>;

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly allOf?: readonly Schema[];
  readonly $ref?: string;
  readonly "x-kubernetes-group-version-kind"?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

/** What takes the place of a value. The methods are no functions: texts cannot be made of it. */
const WRONG: readonly unknown[] = [
  null,
  5,
  "a",
  true,
  [],
  {},
  [null],
  [1],
  [{}],
  { a: 1 },
  { a: null },
  { toString: 1, valueOf: 1 },
];
/** Fields of one kind, each with one value, that one run tries; with QUORATE_SOAK 500. */
const FIELDS = process.env["QUORATE_SOAK"] === "1" ? 500 : 8;
const MAX_DEPTH = 6;
const JSON_TYPE = { "content-type": "application/json" };
const APPLY = { "content-type": "application/apply-patch+yaml" };

/** A value of the type, with all fields. */
function sample(schema: Schema, schemas: Readonly<Record<string, Schema>>, depth = 0): unknown {
  const reference = schema.$ref ?? schema.allOf?.[0]?.$ref;
  if (reference !== undefined) {
    const named = schemas[reference.slice(reference.lastIndexOf("/") + 1)];
    return sample(named, schemas, depth);
  }
  if (schema.type === "array")
    return depth > MAX_DEPTH ? [] : [sample(schema.items ?? {}, schemas, depth + 1)];
  if (schema.type === "integer" || schema.type === "number") return 1;
  if (schema.type === "boolean") return true;
  if (schema.type !== "object" && schema.properties === undefined) return "a";
  if (depth > MAX_DEPTH) return {};
  const more = schema.additionalProperties;
  const own = Object.entries(schema.properties ?? {});
  const all = typeof more === "object" ? [...own, ["a", more] as const] : own;
  return Object.fromEntries(all.map(([name, of]) => [name, sample(of, schemas, depth + 1)]));
}

function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const own = [...path, name];
    return [own, ...pathsOf(field, own)];
  });
}

/** A copy of the object with another value at a path. */
function withValue(object: Anything, path: readonly string[], value: unknown): Anything {
  const copy = structuredClone(object);
  let at = copy;
  for (const step of path.slice(0, -1)) {
    if (typeof at[step] !== "object" || at[step] === null) at[step] = {};
    at = at[step] as Anything;
  }
  at[path.at(-1)!] = value;
  return copy;
}

/** Objects to be changed, of kinds whose rules want some fields. */
const CONTAINERS = { containers: [{ name: "c", image: "i" }] };
const TEMPLATE = {
  selector: { matchLabels: { a: "b" } },
  template: { metadata: { labels: { a: "b" } }, spec: CONTAINERS },
};
const RULES = { rules: [{ verbs: ["get"], apiGroups: [""], resources: ["a"] }] };
const ROLE_REF = {
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "a" },
  subjects: [{ kind: "User", name: "a", apiGroup: "rbac.authorization.k8s.io" }],
};
const HOOK = {
  name: "w.a.b",
  admissionReviewVersions: ["v1"],
  sideEffects: "None",
  failurePolicy: "Ignore",
  clientConfig: { url: "https://a.b/c" },
  rules: [],
};
const GOOD: Readonly<Record<string, Anything>> = {
  ConfigMap: { data: { a: "b" }, binaryData: { b: "AA==" } },
  Secret: { data: { a: "AA==" } },
  Pod: { spec: CONTAINERS },
  Deployment: { spec: TEMPLATE },
  ReplicaSet: { spec: TEMPLATE },
  DaemonSet: { spec: TEMPLATE },
  StatefulSet: { spec: TEMPLATE },
  Role: RULES,
  ClusterRole: RULES,
  RoleBinding: ROLE_REF,
  ClusterRoleBinding: ROLE_REF,
  MutatingWebhookConfiguration: { webhooks: [HOOK] },
  ValidatingWebhookConfiguration: { webhooks: [HOOK] },
};
const METADATA = {
  name: "base",
  labels: { a: "b" },
  annotations: { a: "b" },
  finalizers: [],
  ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "p", uid: "u" }],
};

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

describe("values of other types", () => {
  let world: ApiWorld;
  const ends: (() => Promise<void>)[] = [];
  before(async () => {
    world = await ApiWorld.open({ after: (end) => void ends.push(end) });
  });
  after(async () => {
    for (const end of ends) await end();
  });

  async function refused(what: string, target: string, sent: object): Promise<number> {
    const { status, json, text } = await world.request(target, sent);
    assert.notEqual(json?.reason, "InternalError", `${what}: ${text.slice(0, 500)}`);
    // Connections to nodes have none to go to, whatever the request holds.
    const isNodeless = json?.message === "no node is connected to this server";
    assert.ok(
      status < 500 || json?.reason === undefined || isNodeless,
      `${what}: ${status} ${text}`,
    );
    return status;
  }

  test("never end as an internal error, in bodies, patches and applies", async () => {
    const random = new SeededRandom(26n);
    const groups = ["api/v1"];
    for (const { versions } of (await world.ok("/apis")).groups)
      for (const { groupVersion } of versions) groups.push(`apis/${groupVersion}`);
    let requests = 0;
    const send = async (what: string, target: string, sent: object): Promise<void> => {
      requests++;
      await refused(what, target, sent);
    };
    for (const group of groups) {
      const { schemas } = (await world.ok(`/openapi/v3/${group}`)).components as {
        schemas: Record<string, Schema>;
      };
      const { resources } = (await world.ok(`/${group}`)) as { resources: Resource[] };
      for (const resource of resources) {
        const { name, verbs, namespaced, kind } = resource;
        if (!["create", "update", "patch"].some((verb) => verbs.includes(verb))) continue;
        const [plural, subresource] = name.split("/");
        const version = resource.version ?? group.split("/").at(-1)!;
        const owner = resource.group ?? group.split("/").slice(1, -1).join("/");
        const apiVersion = owner === "" ? version : `${owner}/${version}`;
        const schema = Object.values(schemas).find((one) =>
          one["x-kubernetes-group-version-kind"]?.some(
            (of) => of.kind === kind && of.group === owner && of.version === version,
          ),
        );
        const at = `/${group}${namespaced ? "/namespaces/default" : ""}/${plural}`;
        const good = { apiVersion, kind, metadata: METADATA, ...GOOD[kind] };
        const full = sample(schema ?? {}, schemas) as Anything;
        const base = {
          ...full,
          ...good,
          metadata: { ...(full["metadata"] as object), ...METADATA },
        };
        const [all, few] = [pathsOf(base), pathsOf(good)];
        if (subresource === undefined && verbs.includes("create"))
          await world.request(at, { method: "POST", headers: JSON_TYPE, body: good });
        const object = `${at}/base${subresource === undefined ? "" : `/${subresource}`}`;
        for (let i = 0; i < FIELDS; i++) {
          // Half of the fields are those that rules look at.
          const paths = i % 2 === 0 ? all : few;
          const path = paths[random.below(paths.length)];
          const value = WRONG[random.below(WRONG.length)];
          const what = `${name} ${path.join(".")}=${JSON.stringify(value)}`;
          for (const [of, body] of [
            ["full", withValue(base, path, value)],
            ["good", withValue(good, path, value)],
          ] as const) {
            const query = "?dryRun=All";
            if (verbs.includes("create")) {
              const target = subresource === undefined ? at : object;
              const sent = { method: "POST", headers: JSON_TYPE, body };
              await send(`POST ${of} ${what}`, target + query, sent);
            }
            if (of === "full") continue;
            if (verbs.includes("update"))
              await send(`PUT ${what}`, object + query, {
                method: "PUT",
                headers: JSON_TYPE,
                body,
              });
            if (!verbs.includes("patch")) continue;
            const sent = { method: "PATCH", headers: APPLY, body };
            await send(`apply ${what}`, `${object}${query}&fieldManager=m&force=true`, sent);
            const part = withValue({}, path, value);
            const pointer = `/${path.join("/")}`;
            for (const [type, patch] of [
              ["merge-patch", part],
              ["strategic-merge-patch", part],
              ["json-patch", [{ op: "add", path: pointer, value }]],
              ["json-patch", [{ op: "replace", path: pointer, value }]],
            ] as const)
              await send(`${type} ${what}`, object + query, {
                method: "PATCH",
                body: JSON.stringify(patch),
                headers: { "content-type": `application/${type}+json` },
              });
          }
        }
      }
    }
    assert.ok(requests > 400 * FIELDS, `${requests} requests`);
  });

  test("an apply without a text as kind or version, or that is no object, is a bad request", async () => {
    const at = "/api/v1/namespaces/default/configmaps/x?fieldManager=m";
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" } };
    const decoding =
      "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ";
    // As kube-apiserver 1.36.3 answers.
    const cases: readonly [unknown, string][] = [
      [{ ...object, apiVersion: 5 }, "invalid object type: /, Kind=ConfigMap"],
      [{ ...object, apiVersion: null }, "invalid object type: /, Kind=ConfigMap"],
      [{ ...object, apiVersion: [1] }, "invalid object type: /, Kind=ConfigMap"],
      [{ ...object, apiVersion: { toString: 1 } }, "invalid object type: /, Kind=ConfigMap"],
      [{ ...object, apiVersion: "v1/x/y" }, "invalid object type: /, Kind="],
      [{ ...object, apiVersion: "apps/v1" }, "invalid object type: apps/v1, Kind=ConfigMap"],
      [{ ...object, kind: 5 }, "invalid object type: /v1, Kind="],
      [{ ...object, kind: null }, "invalid object type: /v1, Kind="],
      [null, "invalid object type: /, Kind="],
      [5, `${decoding}number into Go value of type map[string]interface {}`],
      ["a", `${decoding}string into Go value of type map[string]interface {}`],
      [[], `${decoding}array into Go value of type map[string]interface {}`],
    ];
    for (const [body, message] of cases) {
      const sent = { method: "PATCH", headers: APPLY, body: JSON.stringify(body) };
      const { status, json } = await world.request(at, sent);
      assert.deepEqual([status, json.message], [400, message], JSON.stringify(body));
    }
    const nothing = { ...object, binaryData: { a: null } };
    const none = { ...object, metadata: { name: "x", managedFields: null } };
    for (const body of [nothing, none]) {
      const sent = { method: "PATCH", headers: APPLY, body: JSON.stringify(body) };
      assert.equal((await world.request(`${at}&dryRun=All`, sent)).status, 201);
    }
  });
});
