/** Admission webhooks: which are called, with what, and what their responses do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiError, KubeObject } from "@quorate/kube-storage";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import type { AdmissionAttributes } from "../../src/admission/admission.ts";
import { ruleMatches } from "../../src/admission/matching.ts";
import { WebhookCallError, type WebhookResponse } from "../../src/admission/webhook-caller.ts";
import { driven, startServer, type TestServer, until } from "./server.ts";
import { MASTER, plainResource } from "./world.ts";

const GROUP = "admissionregistration.k8s.io";
const configMaps = { group: "", version: "v1", resource: "configmaps" };
const RULE = { operations: ["*"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"] };

interface Review {
  readonly request: Record<string, unknown> & { uid: string; object: KubeObject | null };
}

function webhook(name: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name: `${name}.example.org`,
    clientConfig: { url: `https://${name}.example.org/review` },
    rules: [RULE],
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    failurePolicy: "Fail",
    matchPolicy: "Equivalent",
    timeoutSeconds: 5,
    namespaceSelector: {},
    objectSelector: {},
    ...more,
  };
}

async function configure(
  server: TestServer,
  kind: "Mutating" | "Validating",
  name: string,
  webhooks: readonly Record<string, unknown>[],
): Promise<void> {
  const resource = `${kind.toLowerCase()}webhookconfigurations`;
  const object = {
    apiVersion: `${GROUP}/v1`,
    kind: `${kind}WebhookConfiguration`,
    metadata: { name },
    webhooks,
  };
  await driven(server.clock, server.world.create(MASTER, resource, "", object, GROUP));
  await server.clock.advanceAsync(1000);
}

/** Lets a webhook respond as a function of the request says. */
function answer(
  { webhooks }: TestServer,
  name: string,
  respond: (review: Review) => Record<string, unknown>,
): Review[] {
  const reviews: Review[] = [];
  webhooks.answers.set(`https://${name}.example.org/review`, async (call) => {
    const review = JSON.parse(toUtf8(call.body)) as Review;
    reviews.push(review);
    const response = { uid: review.request.uid, ...respond(review) };
    const body = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response };
    return { status: 200, body: fromUtf8(JSON.stringify(body)) };
  });
  return reviews;
}

function patchOf(...operations: readonly unknown[]): Record<string, unknown> {
  const patch = Buffer.from(JSON.stringify(operations)).toString("base64");
  return { allowed: true, patchType: "JSONPatch", patch };
}

function configMap(name: string, more: Record<string, unknown> = {}): KubeObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: {}, ...more };
}

function create(server: TestServer, object: KubeObject): Promise<KubeObject> {
  return driven(server.clock, server.runtime.client.create(configMaps, "default", object));
}

async function refused(server: TestServer, object: KubeObject): Promise<ApiError> {
  const error = await create(server, object).then(
    () => undefined,
    (it: unknown) => it,
  );
  assert.ok(error !== undefined, "it was not refused");
  return error as ApiError;
}

test("a denial has Kubernetes' texts and the webhook's code", async () => {
  const server = await startServer();
  await configure(server, "Validating", "deny", [webhook("deny")]);
  const reviews = answer(server, "deny", () => ({
    allowed: false,
    status: { code: 403, reason: "Forbidden", message: "not today" },
  }));
  const error = await refused(server, configMap("a"));
  assert.equal(error.message, 'admission webhook "deny.example.org" denied the request: not today');
  assert.equal(error.httpStatus, 403);
  const { uid, object, ...request } = reviews[0].request;
  assert.match(uid, /^[0-9a-f-]{36}$/);
  assert.equal(object!.metadata.name, "a");
  assert.deepEqual(request, {
    kind: { group: "", version: "v1", kind: "ConfigMap" },
    resource: { group: "", version: "v1", resource: "configmaps" },
    requestKind: { group: "", version: "v1", kind: "ConfigMap" },
    requestResource: { group: "", version: "v1", resource: "configmaps" },
    name: "a",
    namespace: "default",
    operation: "CREATE",
    userInfo: { username: "system:apiserver", groups: ["system:masters"] },
    oldObject: null,
    dryRun: false,
    options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" },
  });
  answer(server, "deny", () => ({ allowed: false }));
  const silent = await refused(server, configMap("a"));
  assert.equal(
    silent.message,
    'admission webhook "deny.example.org" denied the request without explanation',
  );
  assert.equal(silent.httpStatus, 400);
  await server.stop();
});

test("a webhook that fails closes or opens the way, by its failurePolicy", async () => {
  const server = await startServer();
  await configure(server, "Validating", "broken", [webhook("broken")]);
  const error = await refused(server, configMap("a"));
  assert.equal(
    error.message,
    'Internal error occurred: failed calling webhook "broken.example.org": failed to call webhook: ' +
      'Post "https://broken.example.org/review?timeout=10s": dial tcp 127.0.0.1:1: connect: ' +
      "connection refused",
  );
  assert.equal(error.httpStatus, 500);
  const responses: [WebhookResponse, RegExp][] = [
    [{ status: 500, body: fromUtf8("oops") }, /an error on the server \("oops"\) has prevented/],
    [{ status: 404, body: fromUtf8("") }, /the server could not find the requested resource$/],
    [
      { status: 200, body: fromUtf8("{}") },
      /received invalid webhook response: webhook response was absent$/,
    ],
    [{ status: 200, body: fromUtf8("no json") }, /received invalid webhook response/],
    [
      { status: 200, body: fromUtf8('{"response": {"uid": "other", "allowed": true}}') },
      /expected response\.uid="[0-9a-f-]+", got "other"$/,
    ],
  ];
  for (const [response, text] of responses) {
    server.webhooks.answers.set("https://broken.example.org/review", async () => response);
    assert.match((await refused(server, configMap("a"))).message, text);
  }
  const ref = { group: GROUP, version: "v1", resource: "validatingwebhookconfigurations" };
  const ignoring = server.world.client.update(ref, "", "broken", (it) => ({
    ...it,
    webhooks: [webhook("broken", { failurePolicy: "Ignore" })],
  }));
  await driven(server.clock, ignoring);
  await server.clock.advanceAsync(1000);
  assert.equal((await create(server, configMap("a"))).metadata.name, "a");
  await server.stop();
});

test("mutating webhooks are called in order, and again where they want to see later changes", async () => {
  const server = await startServer();
  await configure(server, "Mutating", "b", [webhook("second")]);
  await configure(server, "Mutating", "a", [webhook("first", { reinvocationPolicy: "IfNeeded" })]);
  const order: string[] = [];
  answer(server, "first", ({ request }) => {
    order.push("first");
    const data = (request.object!["data"] ?? {}) as Record<string, string>;
    const count = String(Object.keys(data).length);
    return patchOf({
      op: "add",
      path: "/data",
      value: { ...data, [`seen${order.length}`]: count },
    });
  });
  answer(server, "second", () => {
    order.push("second");
    return { ...patchOf({ op: "add", path: "/data/second", value: "x" }), warnings: ["careful"] };
  });
  const made = await create(server, configMap("a", { data: { own: "1" } }));
  assert.deepEqual(order, ["first", "second", "first"]);
  assert.deepEqual(made["data"], { own: "1", seen1: "1", second: "x", seen3: "3" });
  await server.stop();
});

test("a patch that adds an empty object is a change, and later webhooks see it", async () => {
  const server = await startServer();
  const kind = { group: "policy", version: "v1", kind: "PodDisruptionBudget" };
  const budgets = { ...kind, resource: "poddisruptionbudgets" };
  server.world.add(plainResource(kind, budgets.resource, true));
  const rules = [{ ...RULE, apiGroups: [kind.group], resources: [budgets.resource] }];
  // The first one's patch lets the object be decoded.
  await configure(server, "Mutating", "a", [webhook("a", { rules }), webhook("b", { rules })]);
  await configure(server, "Validating", "c", [webhook("c", { rules })]);
  answer(server, "a", () => patchOf({ op: "add", path: "/metadata/labels", value: { a: "b" } }));
  answer(server, "b", () => patchOf({ op: "add", path: "/spec/selector", value: {} }));
  const seen = answer(server, "c", () => ({ allowed: true }));
  const budget = { apiVersion: "policy/v1", kind: kind.kind, metadata: { name: "a" }, spec: {} };
  await driven(server.clock, server.runtime.client.create(budgets, "default", budget));
  assert.deepEqual(seen[0].request.object!["spec"], { selector: {} });
  await server.stop();
});

test("a patch that does not fit fails the request", async () => {
  const server = await startServer();
  await configure(server, "Mutating", "a", [webhook("patch")]);
  const patches: [Record<string, unknown>, RegExp][] = [
    [{ allowed: true, patch: "AAAA", patchType: "JSONPatch" }, /undecodable patch/],
    [{ allowed: true, patch: "W10=" }, /returned response\.patch but not response\.patchType$/],
    [
      { allowed: true, patchType: "JSONPatch" },
      /returned response\.patchType but not response\.patch$/,
    ],
    [{ ...patchOf({ op: "x" }), patchType: "Other" }, /unsupported patch type "Other"/],
    [patchOf({ op: "remove", path: "/no/such/path" }), /^Internal error occurred: /],
  ];
  for (const [response, text] of patches) {
    answer(server, "patch", () => response);
    const error = await refused(server, configMap("a"));
    assert.match(error.message, text);
    assert.equal(error.httpStatus, 500);
  }
  await server.stop();
});

test("selectors, conditions and dry runs decide whether a webhook is called", async () => {
  const server = await startServer();
  const hooks = [
    webhook("labels", { objectSelector: { matchLabels: { app: "x" } } }),
    webhook("place", {
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "other" } },
    }),
    webhook("never", { matchConditions: [{ name: "c", expression: "false" }] }),
    webhook("always", { matchConditions: [{ name: "c", expression: "true" }] }),
  ];
  await configure(server, "Validating", "selective", hooks);
  const called = (): string[] =>
    server.webhooks.calls.map(({ config }) => /\/\/(\w+)\./.exec(config.url ?? "")![1]);
  for (const name of ["labels", "place", "never", "always"]) {
    answer(server, name, () => ({ allowed: true }));
  }
  await create(server, configMap("plain"));
  assert.deepEqual(called(), ["always"]);
  server.webhooks.calls.length = 0;
  await create(
    server,
    configMap("labelled", { metadata: { name: "labelled", labels: { app: "x" } } }),
  );
  assert.deepEqual(called(), ["labels", "always"]);
  await configure(server, "Validating", "failing", [
    webhook("failing", { matchConditions: [{ name: "c", expression: "object.fails == 1" }] }),
  ]);
  const error = await refused(server, configMap("b"));
  assert.equal(
    error.message,
    "configmaps \"b\" is forbidden: expression 'object.fails == 1' resulted in error: no such key: fails",
  );
  await server.stop();
});

test("a webhook cannot guard webhook configurations", async () => {
  const server = await startServer();
  const rules = [{ operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"] }];
  await configure(server, "Validating", "all", [webhook("all", { rules })]);
  const ref = { group: GROUP, version: "v1", resource: "validatingwebhookconfigurations" };
  await driven(server.clock, server.runtime.client.delete(ref, "", "all"));
  await until(server.clock, "its end", async () => {
    return create(server, configMap("free")).then(
      () => true,
      () => false,
    );
  });
  await server.stop();
});

test("rules name operations, groups, versions, resources and scopes", () => {
  const attributes = (subresource: string, namespace: string): AdmissionAttributes =>
    ({
      operation: "UPDATE",
      resource: { group: "apps", version: "v1", resource: "deployments" },
      subresource,
      namespace,
    }) as AdmissionAttributes;
  const matches = (rule: object, subresource = "", namespace = "n"): boolean => {
    const of = attributes(subresource, namespace);
    const whole = { operations: ["UPDATE"], apiGroups: ["apps"], apiVersions: ["v1"], ...rule };
    return ruleMatches(whole, of, of.resource);
  };
  assert.equal(matches({ resources: ["deployments"] }), true);
  assert.equal(matches({ resources: ["deployments"] }, "status"), false);
  assert.equal(matches({ resources: ["deployments/*"] }, "status"), true);
  assert.equal(matches({ resources: ["*/status"] }, "status"), true);
  assert.equal(matches({ resources: ["*"] }, "status"), false);
  assert.equal(matches({ resources: ["*/*"] }), true);
  assert.equal(matches({ resources: ["*"], operations: ["CREATE"] }), false);
  assert.equal(matches({ resources: ["*"], apiVersions: ["v1beta1"] }), false);
  assert.equal(matches({ resources: ["*"], scope: "Cluster" }), false);
  assert.equal(matches({ resources: ["*"], scope: "Namespaced" }), true);
  assert.equal(matches({ resources: ["*"], scope: "Cluster" }, "", ""), true);
});

test("configurations that break the rules are refused with Kubernetes' texts", async () => {
  const server = await startServer();
  const object = {
    apiVersion: `${GROUP}/v1`,
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: "bad" },
    webhooks: [
      {
        ...webhook("x"),
        name: "short.name",
        clientConfig: { url: "http://user@host/#f" },
        sideEffects: "Some",
        timeoutSeconds: 31,
        admissionReviewVersions: ["v9"],
        rules: [
          { operations: ["*", "CREATE"], apiGroups: [], apiVersions: [""], resources: ["*", "x"] },
        ],
        matchConditions: [{ name: "c", expression: "what" }],
      },
    ],
  };
  const work = server.world.create(MASTER, "validatingwebhookconfigurations", "", object, GROUP);
  const error = (await driven(
    server.clock,
    work.catch((it: unknown) => it),
  )) as ApiError;
  const texts = error.details!.causes!.map(({ field, message }) => `${field}: ${message}`);
  const form = "; desired format: https://host[/path]";
  assert.deepEqual(texts, [
    'webhooks[0].name: Invalid value: "short.name": should be a domain with at least three segments separated by dots',
    'webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations',
    "webhooks[0].rules[0].apiGroups: Required value",
    "webhooks[0].rules[0].apiVersions[0]: Required value",
    'webhooks[0].rules[0].resources: Invalid value: ["*","x"]: if \'*\' is present, must not specify other resources without subresources',
    'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
    "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
    `webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme${form}`,
    'webhooks[0].clientConfig.url: Invalid value: "user": user information is not permitted in the URL',
    'webhooks[0].clientConfig.url: Invalid value: "f": fragments are not permitted in the URL',
    'webhooks[0].matchConditions[0].expression: Invalid value: "what": compilation failed: ' +
      "ERROR: <input>:1:1: undeclared reference to 'what' (in container '')\n | what\n | ^",
    'webhooks[0].admissionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1',
  ]);
  await server.stop();
});

test("an error that is no refusal of the webhook's is not hidden by failurePolicy Ignore", async () => {
  const server = await startServer();
  await configure(server, "Validating", "busy", [webhook("busy", { failurePolicy: "Ignore" })]);
  server.webhooks.answers.set("https://busy.example.org/review", () =>
    Promise.reject(new WebhookCallError("Busy", "too many webhooks are being called")),
  );
  assert.equal((await create(server, configMap("a"))).metadata.name, "a");
  answer(server, "busy", () => ({ allowed: false, status: { message: "no" } }));
  assert.match((await refused(server, configMap("b"))).message, /denied the request: no$/);
  await server.stop();
});
