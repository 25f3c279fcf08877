import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import { MAX_BODY_BYTES } from "../../src/handlers/call.ts";
import { ApiWorld, CONFIG_MAPS } from "../support/api-world.ts";

const JSON_PATCH = { "content-type": "application/json-patch+json" };
const MERGE_PATCH = { "content-type": "application/merge-patch+json" };
const STRATEGIC_PATCH = { "content-type": "application/strategic-merge-patch+json" };
const APPLY = { "content-type": "application/apply-patch+yaml" };
const TABLE = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };

let world: ApiWorld;
const tasks: (() => Promise<void>)[] = [];
before(async () => {
  world = await ApiWorld.open({ after: (task) => void tasks.push(task) });
});
after(async () => {
  for (const task of tasks) await task();
});

const at = (name: string): string => `${CONFIG_MAPS}/${name}`;
const body = (name: string, data: object, more: object = {}): object => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...more },
  data,
});

describe("create", () => {
  it("responds with 201 and the object, and keeps who set which fields", async () => {
    const sent = {
      method: "POST",
      body: body("made", { a: "1" }),
      headers: { "user-agent": "me/1" },
    };
    const { status, json, headers } = await world.request(`${CONFIG_MAPS}?fieldManager=`, sent);
    assert.equal(status, 201);
    assert.equal(headers["cache-control"], "no-cache, private");
    assert.match(headers["audit-id"], /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]/);
    assert.equal(json.metadata.managedFields[0].manager, "me");
    assert.deepEqual(json.data, { a: "1" });
    const again = await world.request(CONFIG_MAPS, sent);
    assert.deepEqual([again.status, again.json.reason], [409, "AlreadyExists"]);
    assert.equal(again.json.message, 'configmaps "made" already exists');
  });

  it("writes nothing for a dry run", async () => {
    const sent = { method: "POST", body: body("dry", {}) };
    assert.equal((await world.request(`${CONFIG_MAPS}?dryRun=All`, sent)).status, 201);
    assert.equal((await world.request(at("dry"))).status, 404);
  });

  it("warns of unknown and duplicate fields, refuses them, or ignores them", async () => {
    const text = '{"metadata":{"name":"odd"},"foo":1,"data":{"a":"1","a":"2"}}';
    const sent = { method: "POST", body: text };
    const warned = await world.request(`${CONFIG_MAPS}?dryRun=All`, sent);
    assert.equal(
      warned.headers["warning"],
      '299 - "unknown field \\"foo\\"", 299 - "duplicate field \\"data.a\\""',
    );
    const strict = await world.request(`${CONFIG_MAPS}?fieldValidation=Strict`, sent);
    assert.equal(strict.status, 400);
    assert.equal(
      strict.json.message,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: ' +
        'unknown field "foo", duplicate field "data.a"',
    );
    const target = `${CONFIG_MAPS}?fieldValidation=Ignore&dryRun=All`;
    assert.equal((await world.request(target, sent)).headers["warning"], undefined);
  });

  it("takes YAML", async () => {
    const yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata: {a: b}\n";
    const headers = { "content-type": "application/yaml" };
    await world.ok(CONFIG_MAPS, { method: "POST", body: yaml, headers });
    const shown = await world.request(at("yaml"), { headers: { accept: "application/yaml" } });
    assert.match(shown.text, /^data:\n {2}a: b\n/m);
    assert.equal(shown.headers["content-type"], "application/yaml");
  });

  const REFUSED: readonly (readonly [string, string | object, number, RegExp])[] = [
    ["a broken text", "{", 400, /unrecognized.*json parse error: unexpected end of JSON input/],
    ["an empty body", "", 400, /unexpected end of JSON input \(<empty>\)$/],
    ["a list", "[]", 400, /cannot unmarshal array/],
    ["another kind", { kind: "Secret" }, 400, /^Secret in version "v1" cannot be handled as a/],
    ["another version", { apiVersion: "apps/v1" }, 400, /does not match the expected API version/],
    ["a wrong type", { metadata: { name: "x" }, data: 1 }, 400, /cannot be handled as a ConfigMap/],
    ["a bad name", body("Bad_Name", {}), 422, /^ConfigMap "Bad_Name" is invalid: metadata\.name/],
    ["another namespace", body("x", {}, { namespace: "y" }), 400, /does not match the namespace/],
  ];
  for (const [what, sent, status, message] of REFUSED)
    it(`refuses ${what}`, async () => {
      const headers = { "content-type": "application/json" };
      const { json, ...got } = await world.request(CONFIG_MAPS, {
        method: "POST",
        body: sent,
        headers,
      });
      assert.deepEqual([got.status, json.kind, json.status], [status, "Status", "Failure"]);
      assert.match(json.message, message);
    });

  it("refuses bodies above 3 MiB, and values nested too deep", async () => {
    const sent = { method: "POST", body: new Uint8Array(MAX_BODY_BYTES + 1) as never };
    const { status, json } = await world.request(CONFIG_MAPS, sent);
    assert.equal(status, 413);
    assert.equal(json.message, `Request entity too large: limit is ${MAX_BODY_BYTES}`);
    const deep = `{"data":${"[".repeat(50_000)}`;
    assert.equal((await world.request(CONFIG_MAPS, { method: "POST", body: deep })).status, 400);
    const headers = { "content-type": "application/yaml" };
    const yaml = { method: "POST", body: `a: ${"[".repeat(30_000)}`, headers };
    assert.equal((await world.request(CONFIG_MAPS, yaml)).status, 400);
    const long = { method: "POST", body: "a: 1\n".repeat(100_000), headers };
    assert.equal((await world.request(CONFIG_MAPS, long)).status, 413);
  });

  it("refuses options that do not exist", async () => {
    const sent = { method: "POST", body: body("x", {}) };
    const cases = { dryRun: "Some", fieldValidation: "Maybe", fieldManager: "x".repeat(129) };
    for (const [name, value] of Object.entries(cases)) {
      const { status, json } = await world.request(`${CONFIG_MAPS}?${name}=${value}`, sent);
      assert.equal(status, 422, name);
      assert.match(json.message, /^CreateOptions\.meta\.k8s\.io "" is invalid: /);
    }
  });
});

describe("read", () => {
  it("sends an object as it is stored, or its metadata, or a row of a Table", async () => {
    await world.configMap("read", { k: "v" });
    assert.equal((await world.ok(at("read"))).data.k, "v");
    const accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    const partial = await world.ok(at("read"), { headers: { accept } });
    assert.deepEqual([partial.kind, partial.data], ["PartialObjectMetadata", undefined]);
    const table = await world.ok(at("read"), { headers: TABLE });
    assert.equal(table.kind, "Table");
    assert.deepEqual(table.rows[0].cells.slice(0, 2), ["read", 1]);
    assert.equal(table.rows[0].object.kind, "PartialObjectMetadata");
    const none = await world.ok(`${at("read")}?includeObject=None`, { headers: TABLE });
    assert.equal(none.rows[0].object, undefined);
    const bad = await world.request(`${at("read")}?includeObject=X`, { headers: TABLE });
    assert.equal(bad.status, 400);
  });

  it("responds to what is not there as client-go reads it", async () => {
    const { status, json } = await world.request(at("none"));
    assert.equal(status, 404);
    assert.deepEqual(json, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: 'configmaps "none" not found',
      reason: "NotFound",
      details: { name: "none", kind: "configmaps" },
      code: 404,
    });
    for (const path of ["/api/v1/nones", "/apis/none/v1/x", "/api/v1/configmaps/x/y/z/q"])
      assert.equal((await world.request(path)).status, 404, path);
    assert.equal((await world.request("/api/v1/namespaces/x/namespaces/y/z")).status, 404);
  });

  it("refuses verbs that a resource does not have", async () => {
    const refused = ["GET /apis/authentication.k8s.io/v1/tokenreviews", `PUT ${CONFIG_MAPS}`];
    refused.push(`POST ${at("x")}`, "POST /api/v1/configmaps", "DELETE /api/v1/namespaces");
    refused.push(`OPTIONS ${CONFIG_MAPS}`, `PATCH ${CONFIG_MAPS}`);
    for (const line of refused) {
      const [method, path] = line.split(" ");
      const { status, json } = await world.request(path, { method, body: {} });
      assert.equal(status, 405, line);
      const text = "the server does not allow this method on the requested resource";
      assert.equal(json.message, text, line);
    }
  });

  it("sends protobuf", async () => {
    const headers = { accept: "application/vnd.kubernetes.protobuf" };
    for (const path of [at("read"), CONFIG_MAPS, at("none")]) {
      const exchange = world.start(path, { headers });
      await exchange.done;
      const bytes = Buffer.concat(exchange.pieces);
      assert.equal(bytes.subarray(0, 4).toString("latin1"), "k8s\0", path);
      assert.equal(exchange.headers["content-type"], "application/vnd.kubernetes.protobuf");
    }
  });
});

describe("list", () => {
  it("sends pages", async () => {
    for (const name of ["p1", "p2", "p3"])
      await world.configMap(name, {}, { labels: { page: "x" } });
    const target = `${CONFIG_MAPS}?labelSelector=page%3Dx`;
    const first = await world.ok(`${target}&limit=2`);
    assert.equal(first.kind, "ConfigMapList");
    assert.deepEqual(
      first.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
      ["p1", "p2"],
    );
    const token = encodeURIComponent(first.metadata.continue);
    const second = await world.ok(`${target}&limit=2&continue=${token}`);
    assert.equal(second.items.length, 1);
    assert.equal(second.metadata.continue, undefined);
  });

  it("is the same list in every form", async () => {
    const target = `${CONFIG_MAPS}?labelSelector=page%3Dx`;
    const plain = await world.ok(target);
    const pretty = await world.request(`${target}&pretty=1`);
    assert.deepEqual(pretty.json, plain);
    assert.equal(pretty.text, `${JSON.stringify(plain, undefined, 2)}\n`);
    const { parse } = await import("yaml");
    const yaml = await world.request(target, { headers: { accept: "application/yaml" } });
    assert.deepEqual(parse(yaml.text), plain);
    const empty = `${CONFIG_MAPS}?labelSelector=none`;
    assert.deepEqual((await world.request(`${empty}&pretty=1`)).json.items, []);
    const emptyYaml = await world.request(empty, { headers: { accept: "application/yaml" } });
    assert.deepEqual(parse(emptyYaml.text).items, []);
    const table = await world.ok(target, { headers: TABLE });
    assert.equal(table.rows.length, 3);
    const accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    const partial = await world.ok(target, { headers: { accept } });
    assert.deepEqual(
      [partial.kind, partial.items[0].kind, partial.items.length],
      ["PartialObjectMetadataList", "PartialObjectMetadata", 3],
    );
  });

  it("is compressed above 128 KiB, and sent no faster than the client reads", async () => {
    for (let i = 0; i < 5; i++)
      await world.configMap(`big-${i}`, { k: "x".repeat(60_000) }, { labels: { big: "x" } });
    const target = `${CONFIG_MAPS}?labelSelector=big`;
    const exchange = world.start(target, { headers: { "accept-encoding": "gzip" } });
    await exchange.done;
    assert.equal(exchange.headers["content-encoding"], "gzip");
    const items = JSON.parse(gunzipSync(Buffer.concat(exchange.pieces)).toString()).items;
    assert.equal(items.length, 5);
    const slow = world.start(target);
    slow.sendBudgetBytes = 1;
    slow.bufferedBytes = 2;
    while (slow.pieces.length === 0) await new Promise(setImmediate);
    for (let i = 0; i < 20; i++) await new Promise(setImmediate);
    assert.equal(slow.pieces.length, 1, "the second piece waits for the client");
    slow.bufferedBytes = 0;
    slow.listener.drained?.();
    await slow.done;
    assert.equal(JSON.parse(slow.text).items.length, 5);
  });

  const BAD: readonly (readonly [string, number, RegExp])[] = [
    ["resourceVersionMatch=Exact", 422, /forbidden unless resourceVersion is provided/],
    ["resourceVersionMatch=X&resourceVersion=1", 422, /Unsupported value: "X"/],
    ["resourceVersionMatch=Exact&resourceVersion=0", 422, /is forbidden for resourceVersion "0"/],
    ["sendInitialEvents=true", 422, /sendInitialEvents is forbidden for list/],
    ["limit=x", 400, /strconv\.ParseInt: parsing "x"/],
    ["labelSelector=a%20b%20c", 400, /found/],
    ["fieldSelector=spec.x%3D1", 400, /not a known field selector|field label not supported/],
    ["watch=1&sendInitialEvents=true", 422, /sendInitialEvents requires setting/],
    ["watch=1&resourceVersion=1&resourceVersionMatch=Exact", 422, /is forbidden for watch/],
    ["timeout=x", 400, /invalid timeout specified in the request URL/],
    ["continue=x", 400, /continue/],
  ];
  for (const [query, status, message] of BAD)
    it(`refuses ?${query}`, async () => {
      const { json, ...got } = await world.request(`${CONFIG_MAPS}?${query}`);
      assert.equal(got.status, status);
      assert.match(json.message, message);
    });
});

describe("update and patch", () => {
  it("replaces an object, unless it has changed in between", async () => {
    const made = await world.configMap("put", { a: "1" });
    const next = { ...made, data: { a: "2" } };
    const put = await world.ok(at("put"), { method: "PUT", body: next });
    assert.equal(put.data.a, "2");
    const late = await world.request(at("put"), { method: "PUT", body: next });
    assert.deepEqual([late.status, late.json.reason], [409, "Conflict"]);
    const wrong = await world.request(at("put"), { method: "PUT", body: body("other", {}) });
    assert.equal(
      wrong.json.message,
      "the name of the object (other) does not match the name on the URL (put)",
    );
  });

  it("patches by four media types", async () => {
    await world.configMap("patch", { a: "1", b: "2" });
    const patch = (headers: Record<string, string>, sent: unknown, query = "") =>
      world.request(`${at("patch")}${query}`, { method: "PATCH", headers, body: sent });
    const one = await patch(JSON_PATCH, [{ op: "remove", path: "/data/b" }]);
    assert.deepEqual(one.json.data, { a: "1" });
    const two = await patch(MERGE_PATCH, { data: { a: null, c: "3" } });
    assert.deepEqual(two.json.data, { c: "3" });
    const three = await patch(STRATEGIC_PATCH, { data: { d: "4" } });
    assert.deepEqual(three.json.data, { c: "3", d: "4" });
    const applied = body("patch", { d: "5" });
    const conflict = await patch(APPLY, applied, "?fieldManager=x");
    assert.deepEqual([conflict.status, conflict.json.reason], [409, "Conflict"]);
    const four = await patch(APPLY, applied, "?fieldManager=x&force=true");
    assert.deepEqual(four.json.data, { c: "3", d: "5" });
    const unnamed = await patch(APPLY, applied);
    assert.match(unnamed.json.message, /fieldManager: Required value/);
    const unknown = await patch({ "content-type": "text/plain" }, {});
    assert.equal(unknown.status, 415);
    const broken = await patch(JSON_PATCH, [{ op: "remove", path: "/none" }]);
    assert.equal(broken.status, 422);
  });

  it("creates by an apply, and by no other patch", async () => {
    const query = "?fieldManager=x";
    const sent = { method: "PATCH", headers: APPLY, body: body("applied", { a: "1" }) };
    assert.equal((await world.request(at("applied") + query, sent)).status, 201);
    assert.equal((await world.request(at("applied") + query, sent)).status, 200);
    const merge = { method: "PATCH", headers: MERGE_PATCH, body: {} };
    assert.equal((await world.request(at("not-there"), merge)).status, 404);
  });
});

describe("delete", () => {
  it("deletes an object, if preconditions hold", async () => {
    const made = await world.configMap("gone");
    const send = (options: unknown) =>
      world.request(at("gone"), { method: "DELETE", body: options });
    const kind = { kind: "DeleteOptions", apiVersion: "v1" };
    const wrong = await send({ ...kind, preconditions: { uid: "other" } });
    assert.equal(wrong.status, 409);
    const bad = await send({ ...kind, propagationPolicy: "Never" });
    assert.equal(bad.status, 422);
    assert.equal((await send({ ...kind, gracePeriodSeconds: "x" })).status, 400);
    const done = await send({ ...kind, preconditions: { uid: made.metadata.uid } });
    assert.deepEqual([done.status, done.json.status], [200, "Success"]);
    assert.equal((await send(undefined as never)).status, 404);
  });

  it("deletes a collection by its labels", async () => {
    for (const name of ["c1", "c2"]) await world.configMap(name, {}, { labels: { c: "x" } });
    const target = `${CONFIG_MAPS}?labelSelector=c`;
    const list = await world.ok(target, { method: "DELETE" });
    assert.equal(list.items.length, 2);
    assert.equal((await world.ok(target)).items.length, 0);
  });
});
