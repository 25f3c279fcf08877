/**
 * No request does what the same user may not do by the plain path: random paths, methods and
 * queries, with the effect on the storages checked against a naive model of RBAC.
 */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { after, before, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { SeededRandom } from "@quorate/host";
import type { MemoryExchange } from "@quorate/host/testing";
import type {
  RequestContext,
  RestListOptions,
  RestStorage,
  ServedResource,
} from "@quorate/kube-storage";
import { until } from "../../../../test/support/until.ts";
import { definition } from "../crd/cases.ts";
import { ApiWorld } from "../support/api-world.ts";

const SEED = 26n;
/** Requests of one run; QUORATE_RANDOM_PATHS sets another count. */
const COUNT = Number(process.env["QUORATE_RANDOM_PATHS"] ?? 8_000);
const RBAC = "rbac.authorization.k8s.io";
const GROUP = "recorded.example";

interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** What a user has: rules in one namespace, or in all where there is none. */
interface Grant {
  readonly user: string;
  readonly namespace?: string;
  readonly rule: Rule;
}

const OPEN = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const ALL = { verbs: ["*"], apiGroups: ["*"], resources: ["*"] };
const grants: readonly Grant[] = [
  { user: "user-foo", namespace: "foo", rule: ALL },
  { user: "user-named", namespace: "foo", rule: { ...ALL, resourceNames: ["a"] } },
  { user: "user-named", rule: { ...ALL, resourceNames: ["foo"], apiGroups: ["", GROUP] } },
  { user: "user-reader", rule: { ...ALL, verbs: ["get", "list"] } },
  { user: "user-watcher", rule: { ...ALL, verbs: ["watch"] } },
  { user: "user-parts", rule: { ...ALL, resources: ["*/status", "*/scale", "*/finalize"] } },
  { user: "user-parts", namespace: "foo", rule: { ...ALL, resources: ["*/token"] } },
  { user: "user-custom", namespace: "bar", rule: { ...ALL, apiGroups: [GROUP] } },
  { user: "user-maker", rule: { ...ALL, verbs: ["create"] } },
  { user: "user-changer", namespace: "foo", rule: { ...ALL, verbs: ["update", "patch"] } },
];
/** Whose roles allow more ask more often. */
const users = [
  ...new Set(grants.map(({ user }) => user)),
  "user-none",
  "user-foo",
  "user-foo",
  "user-foo",
  "user-foo",
  "user-named",
  "user-named",
  "user-reader",
];

/** What a request has done: the outermost call of a storage. */
interface Effect {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespaced: boolean;
  readonly namespace: string;
  readonly name: string;
}

/** RBAC as its description says it, beside the product's. */
function mayDo(user: string, effect: Effect, namespace: string): boolean {
  const { verb, group, resource, subresource, name } = effect;
  const whole = subresource === "" ? resource : `${resource}/${subresource}`;
  const has = (list: readonly string[], one: string) => list.includes("*") || list.includes(one);
  return grants.some(({ user: whose, namespace: where, rule }) => {
    if (whose !== user || (where !== undefined && where !== namespace)) return false;
    if (!has(rule.verbs, verb) || !has(rule.apiGroups, group)) return false;
    const part = subresource !== "" && rule.resources.includes(`*/${subresource}`);
    if (!has(rule.resources, whole) && !part) return false;
    return rule.resourceNames === undefined || rule.resourceNames.includes(name);
  });
}

/** A namespace is in itself, where a path names it. */
function isPermitted(user: string, effect: Effect): boolean {
  const { group, resource, name, namespace } = effect;
  const isNamespace = group === "" && resource === "namespaces";
  if (!isNamespace || name === "") return mayDo(user, effect, namespace);
  const mayBePlain = effect.verb === "watch" || effect.verb === "list";
  return mayDo(user, effect, name) || (mayBePlain && mayDo(user, effect, ""));
}

/** The path that everybody would write for the effect. */
function plainPath({ verb, group, resource, subresource, namespace, name }: Effect): string {
  const root = group === "" ? "/api/v1" : `/apis/${group}/v1`;
  const isCollection = ["list", "watch", "deletecollection"].includes(verb);
  const isNamed = !isCollection && name !== "";
  const within = namespace === "" ? "" : `/namespaces/${namespace}`;
  const item = isNamed ? `/${name}` : "";
  const part = subresource === "" ? "" : `/${subresource}`;
  const isNamespaceWatch = verb === "watch" && group === "" && resource === "namespaces";
  if (isNamespaceWatch && name !== "") return `${root}/watch/namespaces/${name}`;
  const selector = isCollection && name !== "" ? `fieldSelector=metadata.name%3D${name}` : "";
  const watch = verb === "watch" ? "watch=1" : "";
  return `${root}${within}/${resource}${item}${part}?dryRun=All&${watch}&${selector}`;
}

const METHOD_OF: Readonly<Record<string, string>> = {
  get: "GET",
  list: "GET",
  watch: "GET",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
  deletecollection: "DELETE",
};

let world: ApiWorld;
const tasks: (() => Promise<void>)[] = [];
const depth = new AsyncLocalStorage<true>();
let effects: Effect[] = [];
let method = "GET";

/** Notes the outermost calls that come from users of this test. */
function observe(served: ServedResource): void {
  const { group, resource, subresource, namespaced } = served;
  const storage = served.storage as Record<string, unknown>;
  const note = (verb: string, ctx: RequestContext, name: string): void => {
    const { namespace } = ctx;
    effects.push({ verb, group, resource, subresource, namespaced, namespace, name });
  };
  const wrap = (key: keyof RestStorage, effect: (args: readonly unknown[]) => [string, string]) => {
    const original = storage[key] as ((...args: unknown[]) => unknown) | undefined;
    if (original === undefined) return;
    storage[key] = async (...args: unknown[]) => {
      const ctx = args[0] as RequestContext;
      const isOwn = !ctx.user.name.startsWith("user-") || depth.getStore() === true;
      const [verb, name] = effect(args);
      if (!isOwn) note(verb, ctx, name);
      const result = await depth.run(true, () => original.apply(storage, args));
      const { created } = (result ?? {}) as { readonly created?: boolean };
      if (!isOwn && created === true) note("create", ctx, name);
      return result;
    };
  };
  const nameOf = (options: unknown): string =>
    (options as RestListOptions).predicate.field.exactValue("metadata.name") ?? "";
  wrap("get", ([, name]) => ["get", String(name)]);
  wrap("list", ([, options]) => ["list", nameOf(options)]);
  wrap("watch", ([, options]) => ["watch", nameOf(options)]);
  wrap("create", () => ["create", ""]);
  wrap("createNamed", ([, name]) => ["create", String(name)]);
  wrap("update", ([, name]) => [method === "PATCH" ? "patch" : "update", String(name)]);
  wrap("delete", ([, name]) => ["delete", String(name)]);
  wrap("deleteCollection", () => ["deletecollection", ""]);
}

function customDefinition(plural: string, kind: string, scope: string) {
  const scale = { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" };
  const version = { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: OPEN } };
  const versions = [{ ...version, subresources: { status: {}, scale } }];
  return definition(plural, OPEN, { scope, names: { plural, kind }, versions });
}

before(async () => {
  world = await ApiWorld.open({ after: (task) => void tasks.push(task) });
  const post = (path: string, body: unknown) => world.ok(path, { method: "POST", body });
  const named = (kind: string, name: string) => ({ apiVersion: "v1", kind, metadata: { name } });
  for (const name of ["foo", "bar", "a"])
    await post("/api/v1/namespaces", named("Namespace", name));
  for (const namespace of ["foo", "bar"])
    for (const [plural, kind] of [
      ["configmaps", "ConfigMap"],
      ["secrets", "Secret"],
      ["serviceaccounts", "ServiceAccount"],
    ])
      for (const name of ["a", "b"])
        await post(`/api/v1/namespaces/${namespace}/${plural}`, named(kind, name));
  for (const [at, { user, namespace, rule }] of grants.entries()) {
    const apiVersion = `${RBAC}/v1`;
    const metadata = { name: `grant-${at}` };
    const clusterRole = { apiVersion, kind: "ClusterRole", metadata, rules: [rule] };
    await post(`/apis/${RBAC}/v1/clusterroles`, clusterRole);
    const [kind, where] =
      namespace === undefined
        ? ["ClusterRoleBinding", "clusterrolebindings"]
        : ["RoleBinding", `namespaces/${namespace}/rolebindings`];
    await post(`/apis/${RBAC}/v1/${where}`, {
      apiVersion,
      kind,
      metadata,
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: metadata.name },
      subjects: [{ kind: "User", apiGroup: RBAC, name: user }],
    });
  }
  const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const [plural, kind, scope] of [
    ["widgets", "Widget", "Namespaced"],
    ["gadgets", "Gadget", "Cluster"],
    // A custom kind with the name of the built-in one that the router knows.
    ["namespaces", "Space", "Cluster"],
  ])
    await post(crds, customDefinition(plural, kind, scope));
  const served = () => world.plane.resources.find(GROUP, "v1", "namespaces", "");
  await until("the custom kinds are served", () => served() !== undefined);
  await until("the last grant is known", async () => {
    const path = "/api/v1/namespaces/foo/configmaps/none";
    const { status } = await world.request(path, {
      method: "DELETE",
      user: "user-foo",
      groups: [],
    });
    return status === 404;
  });
  const storages = new Set<unknown>();
  for (const one of world.plane.resources.all()) {
    if (!storages.has(one.storage)) observe(one);
    storages.add(one.storage);
  }
});
after(async () => {
  for (const task of tasks) await task();
});

const random = new SeededRandom(SEED);
const pick = <T>(list: readonly T[]): T => list[random.below(list.length)];

/** Root, plural, whether it is namespaced, and subresources. */
const KINDS: readonly (readonly [string, string, boolean, readonly string[]])[] = [
  ["/api/v1", "configmaps", true, ["status"]],
  ["/api/v1", "secrets", true, []],
  ["/api/v1", "serviceaccounts", true, ["token", "token"]],
  ["/api/v1", "namespaces", false, ["status", "finalize"]],
  ["/api/v1", "nodes", false, ["status"]],
  [`/apis/${RBAC}/v1`, "roles", true, []],
  [`/apis/${RBAC}/v1`, "clusterroles", false, []],
  [`/apis/${GROUP}/v1`, "widgets", true, ["status", "scale"]],
  [`/apis/${GROUP}/v1`, "gadgets", false, ["status", "scale"]],
  [`/apis/${GROUP}/v1`, "namespaces", false, ["status"]],
];
const NAMES = ["a", "b", "foo", "bar"];
const SEGMENTS = [
  ...KINDS.map(([, plural]) => plural),
  "namespaces",
  "namespaces",
  "foo",
  "bar",
  "a",
  "b",
  "status",
  "scale",
  "finalize",
  "token",
  "watch",
  "proxy",
  "",
  "",
  ".",
  "..",
  "%2F",
  "foo%2Fconfigmaps",
  "namespaces%2Fbar",
  "%66oo",
  "namespaces/foo",
  "namespaces/bar",
  "api",
  "v1",
  "%2e%2e",
  "none",
];
const METHODS = [
  "GET",
  "GET",
  "GET",
  "POST",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "DELETE",
  "GET",
  "GET",
  "GET",
  "POST",
  "PUT",
  "PUT",
  "PATCH",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "FOO",
];
const QUERIES = [
  "",
  "",
  "watch=1",
  "watch=0",
  "watch",
  "fieldSelector=metadata.name%3Da",
  "watch=1&fieldSelector=metadata.name%3Dfoo",
  "fieldSelector=metadata.name%3Da%5C%2Cb",
  "fieldSelector=metadata.name%3D%3Db%2Cmetadata.name%3Da",
  "watch=1&watch=0",
  "fieldSelector=metadata.namespace%3Dbar",
  "fieldManager=t&force=true",
  "namespace=bar&name=b",
];

/** A path that has a route, and in half of the cases up to three changes of it. */
function randomPath(): string {
  const [root, plural, namespaced, subresources] = pick(KINDS);
  const within =
    namespaced && random.below(5) > 0 ? ["namespaces", pick(["foo", "foo", "bar"])] : [];
  const name = random.below(3) > 0 ? [pick(["a", ...NAMES])] : [];
  const part = name.length > 0 && random.below(3) === 0 ? subresources.slice(-1) : [];
  const watch = random.below(12) === 0 ? ["watch"] : [];
  const parts = [...watch, ...within, plural, ...name, ...part];
  for (let changes = random.below(2) * random.below(4); changes > 0; changes--) {
    const at = random.below(parts.length + 1);
    const kind = random.below(4);
    if (kind === 0) parts.splice(at, 0, pick(SEGMENTS));
    else if (kind === 1) parts.splice(at, 1);
    else if (kind === 2) parts.splice(at, 1, pick(SEGMENTS));
    else parts.splice(at, 0, "namespaces", pick(["foo", "bar", "a"]));
  }
  const path = `${random.below(20) === 0 ? pick(KINDS)[0] : root}/${parts.join("/")}`;
  return random.below(20) === 0 ? `/${path}/` : path;
}

const BODIES: readonly (readonly [string, string])[] = [
  ["v1", "ConfigMap"],
  ["v1", "Namespace"],
  ["v1", "ServiceAccount"],
  ["v1", "Secret"],
  [`${RBAC}/v1`, "Role"],
  [`${GROUP}/v1`, "Widget"],
  [`${GROUP}/v1`, "Gadget"],
  [`${GROUP}/v1`, "Space"],
  ["autoscaling/v1", "Scale"],
  ["authentication.k8s.io/v1", "TokenRequest"],
];
const KIND_OF: Readonly<Record<string, number>> = {
  configmaps: 0,
  namespaces: 1,
  serviceaccounts: 2,
  secrets: 3,
  roles: 4,
  widgets: 5,
  gadgets: 6,
  scale: 8,
  token: 9,
};

/** Mostly of the kind that the path asks for. */
function randomBody(path: string): unknown {
  const asked = path.split("/").findLast((one) => Object.hasOwn(KIND_OF, one));
  const fits = asked !== undefined && random.below(4) > 0;
  const [apiVersion, kind] = fits ? BODIES[KIND_OF[asked]] : pick(BODIES);
  const name = path.split("/").findLast((one) => NAMES.includes(one)) ?? "a";
  const namespace = pick([undefined, undefined, "foo", "bar"]);
  return { apiVersion, kind, metadata: { name, ...(namespace && { namespace }) } };
}

/** The status of a request, whose watch is left once it has begun. */
async function statusOf(target: string, sent: Parameters<ApiWorld["start"]>[1]): Promise<number> {
  method = sent?.method ?? "GET";
  const exchange: MemoryExchange = world.start(target, sent);
  for (let turns = 0; exchange.state === "open"; turns++) {
    assert.ok(turns < 1_000_000, `no response: ${target}`);
    await turn();
  }
  if (effects.some(({ verb }) => verb === "watch")) exchange.leave();
  await exchange.done;
  return exchange.status!;
}

const TYPES = ["application/merge-patch+json", "application/apply-patch+yaml"];

test(`${COUNT} random paths do nothing that the plain path may not do`, async () => {
  const counts = { effects: 0, refused: 0, plain: 0 };
  const asked = new Set<string>();
  for (let at = 0; at < COUNT; at++) {
    const path = randomPath();
    const user = pick(users);
    const sent = { method: pick(METHODS), user, groups: [] };
    const hasBody = ["POST", "PUT", "PATCH"].includes(sent.method);
    const type = sent.method === "PATCH" ? pick(TYPES) : "application/json";
    const more = hasBody ? { body: randomBody(path), headers: { "content-type": type } } : {};
    const target = `${path}?dryRun=All&${pick(QUERIES)}`;
    effects = [];
    const status = await statusOf(target, { ...sent, ...more });
    if (status === 403) counts.refused++;
    const done = effects;
    assert.ok(status >= 300 || done.length > 0, `${target}: ${status} without an effect`);
    for (const effect of done) {
      counts.effects++;
      const what = `${user}: ${sent.method} ${target} (${status}) did ${JSON.stringify(effect)}`;
      assert.ok(isPermitted(user, effect), what);
      const key = JSON.stringify([user, effect]);
      // Creation by an update, and more rights than one's own, are refused in the storage.
      if (asked.has(key) || status === 403) continue;
      asked.add(key);
      effects = [];
      const plain = { ...sent, ...more, method: METHOD_OF[effect.verb] };
      const plainStatus = await statusOf(plainPath(effect), plain);
      assert.notEqual(plainStatus, 403, `${what}, which ${plainPath(effect)} may not`);
      counts.plain++;
    }
  }
  const least = { effects: COUNT / 20, refused: COUNT / 20, plain: Math.min(COUNT / 80, 200) };
  for (const [what, count] of Object.entries(counts))
    assert.ok(count >= least[what as keyof typeof least], `only ${count} ${what}`);
});

test("The model refuses what a role in one namespace does to another", () => {
  const effect = { group: "", resource: "namespaces", subresource: "", namespaced: false };
  const victim = { ...effect, verb: "delete", namespace: "", name: "bar" };
  assert.equal(isPermitted("user-foo", victim), false);
  assert.equal(isPermitted("user-foo", { ...victim, name: "foo" }), true);
});
