import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeClock } from "@quorate/host/node";
import { ANONYMOUS } from "@quorate/kube-storage";
import { until } from "../../../../test/support/until.ts";
import { Auditor, MAX_CLAIMED_ADDRESSES, sourceIps } from "../../src/audit/auditor.ts";
import { parseAuditPolicy } from "../../src/audit/policy-file.ts";
import {
  MAX_ANNOTATION_CHARS,
  MAX_ANNOTATIONS,
  MAX_AUDIT_OBJECT_CHARS,
  RequestAudit,
} from "../../src/audit/request-audit.ts";
import { withoutManagedFields } from "../../src/audit/without-managed-fields.ts";
import { ApiWorld, CONFIG_MAPS } from "../support/api-world.ts";

type T = Parameters<typeof ApiWorld.open>[0];

/** A server whose audit lines are kept. */
async function recording(t: T, rules: readonly object[], isStrict = false, format = "json") {
  const lines: string[] = [];
  const sink = { isWritable: true, write: (line: string) => void lines.push(line) };
  const { policy } = parseAuditPolicy({ apiVersion: "audit.k8s.io/v1", kind: "Policy", rules });
  const options = { policy, isStrict, format: format as "json" };
  const auditor = new Auditor(options, { clock: nodeClock, sink });
  const world = await ApiWorld.open(t, {}, undefined, { auditor });
  const events = () => lines.map((line) => JSON.parse(line));
  return { world, lines, sink, auditor, events };
}

test("A policy decides what of a secret is in the log", async (t) => {
  const { world, lines } = await recording(t, [
    { level: "Metadata", resources: [{ group: "", resources: ["secrets"] }] },
    { level: "RequestResponse" },
  ]);
  const body = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s" },
    stringData: { a: "hush" },
  };
  await world.ok("/api/v1/namespaces/default/secrets", { method: "POST", body });
  await world.request("/api/v1/namespaces/default/secrets/s");
  await world.request("/api/v1/namespaces/default/secrets");
  assert.equal(lines.length, 6);
  assert.doesNotMatch(lines.join("\n"), /hush|aHVzaA/);
  await world.configMap("c", { a: "visible" });
  assert.match(lines.at(-1)!, /"requestObject":.*visible.*"responseObject":.*visible/);
});

test("Lists and tables are recorded whole, without managedFields where those are omitted", async (t) => {
  const { world, lines, events } = await recording(t, [
    { level: "RequestResponse", omitManagedFields: true },
  ]);
  await world.configMap("a");
  await world.configMap("b");
  lines.length = 0;
  await world.ok(CONFIG_MAPS);
  const table = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
  await world.ok(`${CONFIG_MAPS}?includeObject=Object`, { headers: table });
  await world.request(CONFIG_MAPS, { headers: { accept: "application/vnd.kubernetes.protobuf" } });
  const [, list, , rows, , protobuf] = events();
  assert.deepEqual(
    list.responseObject.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
    ["a", "b"],
  );
  assert.equal(rows.responseObject.kind, "Table");
  assert.deepEqual(protobuf.responseObject.items, list.responseObject.items);
  assert.doesNotMatch(lines.join("\n"), /managedFields/);
});

test("While the log cannot be written, blocking-strict refuses requests", async (t) => {
  const { world, sink, auditor, lines } = await recording(t, [{ level: "Metadata" }], true);
  sink.isWritable = false;
  const { status, json } = await world.request(CONFIG_MAPS);
  assert.equal(status, 500);
  assert.equal(json.message, "Internal error occurred: failed to store audit event");
  assert.deepEqual([auditor.refused, lines.length], [1, 0]);
  sink.isWritable = true;
  await world.ok(CONFIG_MAPS);
  const other = await recording(t, [{ level: "Metadata" }]);
  other.sink.isWritable = false;
  await other.world.ok(CONFIG_MAPS);
});

test("A watch has an event when it begins and one when it ends", async (t) => {
  const { world, events } = await recording(t, [{ level: "Metadata" }]);
  const watch = world.start(`${CONFIG_MAPS}?watch=1`);
  await until("the watch runs", () => watch.status === 200);
  watch.leave();
  await until("it has ended", () => events().length === 3);
  const stages = events().map((event) => [event.stage, event.responseStatus?.code]);
  assert.deepEqual(stages, [
    ["RequestReceived", undefined],
    ["ResponseStarted", 200],
    ["ResponseComplete", 200],
  ]);
});

test("A path that cannot be read is recorded, with who asked for it", async (t) => {
  const { world, lines, events } = await recording(t, [{ level: "Metadata" }]);
  for (const path of ["/api/v1/watch", "/api/v1/proxy/", "/api/v1/configmaps/%zz", "/%ff"]) {
    lines.length = 0;
    const { status, json } = await world.request(path, { user: "jane", groups: [] });
    assert.deepEqual([status, json.reason], [400, "BadRequest"], path);
    const recorded = events().map(({ stage, requestURI, user, verb, responseStatus }) => [
      stage,
      requestURI,
      user.username,
      verb,
      responseStatus?.code,
    ]);
    assert.deepEqual(recorded, [
      ["RequestReceived", path, "jane", "get", undefined],
      ["ResponseComplete", path, "jane", "get", 400],
    ]);
  }
  lines.length = 0;
  const headers = { authorization: "Bearer forged" };
  const unknown = await world.request("/api/v1/watch", { user: "", groups: [], headers });
  assert.deepEqual([unknown.status, lines.length], [401, 1]);
});

test("A client that leaves before its response is recorded so", async (t) => {
  const { world, events } = await recording(t, [{ level: "Metadata" }]);
  const post = world.start(CONFIG_MAPS, { method: "POST", body: "{" }, true);
  await until("it is authenticated", () => events().length === 1);
  post.leave();
  await until("it has ended", () => events().length === 2);
  const { responseStatus } = events()[1];
  assert.equal(responseStatus.message, "Connection closed early");
});

test("The format legacy is one line of text", async (t) => {
  const { world, lines } = await recording(t, [{ level: "Metadata" }], false, "legacy");
  await world.request(`${CONFIG_MAPS}/none`, { headers: { "user-agent": 'x"y' } });
  const [time, ...fields] = lines[1].split(/ (?=\w[-\w]*=)| AUDIT: /);
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(fields.slice(1), [
    'stage="ResponseComplete"',
    'ip="127.0.0.1"',
    'method="get"',
    'user="admin"',
    'groups="\\"system:masters\\",\\"system:authenticated\\""',
    'as="<self>"',
    'asgroups="<lookup>"',
    'user-agent="x\\"y"',
    'namespace="default"',
    `uri="${CONFIG_MAPS}/none"`,
    'response="404"',
  ]);
});

function requestAudit(level: "Metadata" | "RequestResponse" = "RequestResponse") {
  const event = {
    level,
    auditId: "1",
    requestUri: "/",
    verb: "get",
    user: ANONYMOUS,
    sourceIps: [],
    impersonatedUser: undefined,
    impersonationConstraint: "",
    userAgent: "",
    objectRef: undefined,
    responseStatus: undefined,
    receivedMs: 0,
    requestObject: undefined,
    responseObject: undefined,
    annotations: new Map(),
  };
  const decision = { level, omitStages: [], omitManagedFields: false };
  return { event, audit: new RequestAudit(event, decision, false, () => true) };
}

test("Bodies, annotations and claimed addresses have bounds", () => {
  const { event, audit } = requestAudit();
  audit.response({ text: "x".repeat(MAX_AUDIT_OBJECT_CHARS) });
  assert.equal(event.responseObject, undefined);
  audit.patch({ a: 1 }, MAX_AUDIT_OBJECT_CHARS + 1);
  assert.equal(event.requestObject, undefined);
  assert.equal(event.annotations.get("audit.k8s.io/truncated"), "true");
  audit.annotate("long", "x".repeat(MAX_ANNOTATION_CHARS + 1));
  assert.equal(event.annotations.get("long")!.length, MAX_ANNOTATION_CHARS);
  for (let i = 0; i < MAX_ANNOTATIONS; i++) audit.annotate(`a${i}`, "");
  assert.equal(event.annotations.size, MAX_ANNOTATIONS);
  const claimed = Array.from({ length: MAX_CLAIMED_ADDRESSES + 9 }, (_, i) => `10.0.0.${i}`);
  const headers = new Map([["x-forwarded-for", claimed.join(",")]]);
  const head = { method: "GET", path: "/", query: "", headers, peerCommonName: undefined };
  const ips = sourceIps({ ...head, peerAddress: "[::1]:99" });
  assert.equal(ips.length, MAX_CLAIMED_ADDRESSES + 1);
  assert.equal(ips.at(-1), "::1");
});

test("managedFields are taken out of objects, lists and rows", () => {
  const object = { metadata: { name: "a", managedFields: [{}] }, data: {} };
  const plain = { metadata: { name: "a" }, data: {} };
  assert.deepEqual(withoutManagedFields(object), plain);
  assert.deepEqual(withoutManagedFields({ items: [object] }), { items: [plain] });
  const rows = withoutManagedFields({ rows: [{ cells: [1], object }] });
  assert.deepEqual(rows, { rows: [{ cells: [1], object: plain }] });
  assert.equal(object.metadata.managedFields.length, 1);
});
