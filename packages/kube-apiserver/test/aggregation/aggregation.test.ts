/** Another API server behind ours, over real connections. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type RunningApiServer, startApiServer } from "../../node/start.ts";
import { readyEndpoints } from "../../src/aggregation/places.ts";
import { MAX_BODY_BYTES } from "../../src/handlers/call.ts";
import { accessOf } from "../interop/rest/exchange.ts";
import {
  SAMPLE_GROUP,
  type SampleServer,
  sampleApiService,
  startSampleServer,
} from "../support/sample-server.ts";

const API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAME = `v1.${SAMPLE_GROUP}`;
const ROOT = `/apis/${SAMPLE_GROUP}/v1`;

let api: RunningApiServer;
let sample: SampleServer;

before(async () => {
  sample = await startSampleServer();
  api = await startApiServer({
    webhookServices: new Map([["sample.default", `127.0.0.1:${sample.port}`]]),
  });
  await created(API_SERVICES, sampleApiService(sample));
  await until(async () => (await conditionOf(NAME))?.status === "True");
});
after(async () => {
  await api.stop();
  await sample.stop();
});

async function created(path: string, body: unknown): Promise<void> {
  const { status, body: answer } = await api.request(path, { body });
  assert.equal(status, 201, JSON.stringify(answer));
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(10);
}

async function conditionOf(name: string) {
  const { body } = await api.request(`${API_SERVICES}/${name}`);
  return body.status?.conditions?.[0];
}

/** A request whose response is read by the test. */
function open(path: string, headers: Record<string, string> = {}, kubeconfig = api.kubeconfig) {
  const { url, cert, key } = accessOf(kubeconfig);
  const { hostname, port } = new URL(url);
  const to = { hostname, port, path };
  const sent = request({ ...to, cert, key, ca: api.ca, headers, agent: false });
  sent.on("error", () => {});
  sent.end();
  return sent;
}

async function responseOf(path: string, headers: Record<string, string> = {}) {
  const sent = open(path, headers);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { sent, response };
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of response) text += String(part);
  return text;
}

test("A request arrives with the user's name, and with this server's certificate", async () => {
  const { body } = await api.request(`${ROOT}/namespaces/default/widgets/a`);
  assert.deepEqual(body.headers["x-remote-user"], ["kubernetes-admin"]);
  assert.deepEqual(body.headers["x-remote-group"], ["system:masters", "system:authenticated"]);
  assert.ok(sample.clients.has("front-proxy-client"));
  const path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
  const { data } = (await api.request(path)).body;
  assert.equal(data["requestheader-allowed-names"], '["front-proxy-client"]');
  assert.match(data["requestheader-client-ca-file"], /^-----BEGIN CERTIFICATE-----/);
  assert.equal(data["client-ca-file"].trim(), api.ca.trim());
});

test("Who may not do it here does not get there", async () => {
  const before = sample.clients.size;
  const jane = await api.kubeconfigFor("jane", []);
  const sent = open(`${ROOT}/widgets`, {}, jane);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 403);
  assert.match(await textOf(response), /cannot list resource \\"widgets\\" in API group/);
  assert.equal(sample.clients.size, before);
});

test("Discovery and OpenAPI have what the other server offers", async () => {
  const v2 = async () => (await api.request("/openapi/v2")).body;
  await until(async () => Object.hasOwn((await v2()).paths, `${ROOT}/widgets`));
  const { definitions, paths } = await v2();
  assert.equal(paths["/apis/other.example.com/v1/things"], undefined);
  assert.equal(definitions.Unused, undefined);
  const meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
  assert.equal(definitions[`${meta}_v2`].description, "another one");
  assert.deepEqual(definitions.Widget.properties, {
    metadata: { $ref: `#/definitions/${meta}_v2` },
    next: { $ref: "#/definitions/Widget" },
  });
  const { body: index } = await api.request("/openapi/v3");
  const { serverRelativeURL } = index.paths[ROOT.slice(1)];
  assert.equal((await api.request(serverRelativeURL)).body.info.title, "sample");
  const { groups } = (await api.request("/apis")).body;
  const names = groups.map(({ name }: { name: string }) => name);
  assert.equal(names.at(-1), SAMPLE_GROUP);
  const plain = (await api.request(`/apis/${SAMPLE_GROUP}`)).body;
  assert.equal(plain.preferredVersion.groupVersion, `${SAMPLE_GROUP}/v1`);
  assert.equal((await api.request(ROOT)).body.resources[0].name, "widgets");
});

test("A watch goes on until its caller leaves, and then ends there too", async () => {
  const open = sample.open.size;
  const { sent, response } = await responseOf(`${ROOT}/widgets?watch=1`);
  const [piece] = await once(response, "data");
  assert.equal(String(piece), '{"type":"ADDED"}\n');
  assert.ok(sample.open.size >= open);
  const during = sample.open.size;
  sent.destroy();
  await until(async () => sample.open.size < during);
});

test("A connection for another protocol is passed on in both directions", async () => {
  const path = `${ROOT}/namespaces/a/widgets/b/exec`;
  const secret = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
  const sent = open(path, {
    connection: "Upgrade",
    upgrade: "SPDY/3.1",
    "sec-websocket-protocol": `${secret}, v5.channel.k8s.io`,
  });
  const [response, socket, head] = (await once(sent, "upgrade")) as [
    IncomingMessage,
    Socket,
    Buffer,
  ];
  assert.equal(response.statusCode, 101);
  assert.equal(response.headers.upgrade, "SPDY/3.1");
  assert.equal(response.headers["x-protocols"], "v5.channel.k8s.io");
  socket.write("world");
  let text = String(head);
  while (text !== "hello world") {
    const [piece] = await once(socket, "data");
    text += String(piece);
  }
  const during = sample.open.size;
  socket.destroy();
  await until(async () => sample.open.size < during);
  const refused = await responseOf(`${path}/refused`, { connection: "Upgrade", upgrade: "x" });
  assert.deepEqual([refused.response.statusCode, await textOf(refused.response)], [403, "no"]);
});

test("A caller that does not read holds the other server up", async () => {
  const { sent, response } = await responseOf(`${ROOT}/widgets/endless`);
  response.pause();
  const memory = process.memoryUsage.rss();
  await delay(300);
  assert.ok(process.memoryUsage.rss() - memory < 64 * 1024 * 1024);
  sent.destroy();
});

test("What is cut off, silent, too long or strange ends with an error", async () => {
  const { response } = await responseOf(`${ROOT}/widgets/cut`);
  await assert.rejects(textOf(response), /aborted/);
  const late = await api.request(`${ROOT}/widgets/silent?timeout=50ms`);
  assert.deepEqual([late.status, late.body.reason], [504, "Timeout"]);
  const body = "x".repeat(MAX_BODY_BYTES + 1);
  assert.equal((await api.request(`${ROOT}/widgets`, { body })).status, 413);
  const dots = await responseOf(`${ROOT}/%2e%2e/v2/widgets`);
  assert.equal(dots.response.statusCode, 400);
  const teapot = await responseOf(`${ROOT}/widgets/teapot`);
  assert.equal(teapot.response.statusCode, 418);
  assert.equal(teapot.response.headers["x-own"], "1");
});

test("A service without an address waits for endpoints; one outside is reached by name", async () => {
  const metadata = { name: "behind" };
  const ports = [{ name: "https", port: 443 }];
  await created("/api/v1/namespaces/default/services", { metadata, spec: { ports } });
  const spec = { service: { namespace: "default", name: "behind" }, version: "v2" };
  await created(
    API_SERVICES,
    sampleApiService(sample, { ...spec, insecureSkipTLSVerify: true, caBundle: undefined }),
  );
  const name = `v2.${SAMPLE_GROUP}`;
  await until(async () => (await conditionOf(name))?.reason === "EndpointsNotFound");
  // An endpoint may not have an address of this host, a host's name may.
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "behind-1" },
    endpoints: [
      { addresses: ["10.1.2.3"], conditions: { ready: false } },
      { addresses: ["10.1.2.4"], conditions: { ready: true } },
    ],
    ports: [
      { name: "http", port: 8080 },
      { name: "https", port: 8443 },
    ],
  };
  assert.deepEqual(readyEndpoints([slice], "https"), [{ host: "10.1.2.4", port: 8443 }]);
  const outside = { type: "ExternalName", externalName: "localhost" };
  await created("/api/v1/namespaces/default/services", {
    metadata: { name: "outside" },
    spec: { ...outside, ports: [{ name: "https", port: sample.port }] },
  });
  const { body: waiting } = await api.request(`${API_SERVICES}/${name}`);
  const service = { namespace: "default", name: "outside", port: sample.port };
  const moved = { ...waiting, spec: { ...waiting.spec, service } };
  await api.request(`${API_SERVICES}/${name}`, { method: "PUT", body: moved });
  await until(async () => (await conditionOf(name))?.status === "True");
  const { body } = await api.request(`/apis/${SAMPLE_GROUP}/v2/widgets`);
  assert.equal(body.url, `/apis/${SAMPLE_GROUP}/v2/widgets`);
  const { body: object } = await api.request(`${API_SERVICES}/${name}`);
  const caBundle = Buffer.from("no certificate").toString("base64");
  const changed = { ...object, spec: { ...object.spec, caBundle, insecureSkipTLSVerify: false } };
  assert.equal(
    (await api.request(`${API_SERVICES}/${name}`, { method: "PUT", body: changed })).status,
    200,
  );
  await until(async () => (await api.request(`/apis/${SAMPLE_GROUP}/v2/widgets`)).status === 500);
  await api.request(`${API_SERVICES}/${name}`, { method: "DELETE" });
  await until(async () => (await api.request(`/apis/${SAMPLE_GROUP}/v2/widgets`)).status === 404);
});

test("APIServices of built-in groups are put right by the next start", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "local-services-"));
  const label = "kube-aggregator.kubernetes.io/automanaged";
  const labels = { [label]: "onstart" };
  const foreign = {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: { name: "v9.example.org", labels },
    spec: { group: "example.org", version: "v9", groupPriorityMinimum: 9, versionPriority: 9 },
  };
  try {
    {
      await using before = await startApiServer({ dataDir });
      const contentType = "application/merge-patch+json";
      const body = { spec: { versionPriority: 7 } };
      const path = `${API_SERVICES}/v1.apps`;
      await before.request(path, { method: "PATCH", body, contentType });
      await before.request(`${API_SERVICES}/v1.batch`, { method: "DELETE" });
      assert.equal((await before.request(API_SERVICES, { body: foreign })).status, 201);
      assert.equal((await before.request(path)).body.spec.versionPriority, 7);
    }
    await using next = await startApiServer({ dataDir });
    const { body } = await next.request(`${API_SERVICES}/v1.apps`);
    assert.equal(body.spec.versionPriority, 15);
    assert.equal((await next.request(`${API_SERVICES}/v1.batch`)).status, 200);
    await until(async () => (await next.request(`${API_SERVICES}/v9.example.org`)).status === 404);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});
