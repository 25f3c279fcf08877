/** The bounds of what goes on to other API servers, whose place a fake takes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { nodeClock } from "@quorate/host/node";
import { DEFAULT_SERVE_OPTIONS } from "../../node/serve-options.ts";
import { MAX_FORWARDED_REQUESTS, MAX_REMOTE_SERVICES } from "../../src/aggregation/aggregator.ts";
import {
  MAX_PUBLISHED_CERTIFICATES,
  publishTrust,
} from "../../src/aggregation/authentication-config.ts";
import type { BackendRequest, Backends } from "../../src/aggregation/backends.ts";
import { MAX_DISCOVERY_BYTES, MAX_OPENAPI_BYTES } from "../../src/aggregation/remote-documents.ts";
import { wholeResponse } from "../../src/aggregation/whole-response.ts";
import { ApiWorld } from "../support/api-world.ts";
import { sampleApiService } from "../support/sample-server.ts";

const API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices";
const GROUP = "sample.example.com";

/** Answers discovery with a document of so many bytes; watches stay open, and are counted. */
class FakeBackends implements Backends {
  documentBytes = 2;
  readonly asked = new Set<string>();
  open = 0;

  call({ path }: BackendRequest, listener: Parameters<Backends["call"]>[1]) {
    this.asked.add(path);
    const isWatch = path.includes("watch");
    if (isWatch) this.open++;
    else
      queueMicrotask(() => {
        listener.responded(200, {});
        listener.data(new Uint8Array(this.documentBytes).fill(0x20));
        listener.ended();
      });
    const abort = (): void => {
      if (isWatch) this.open--;
    };
    return { pause() {}, resume() {}, abort };
  }
}

function apiService(version: string, group = GROUP) {
  const service = { namespace: "default", name: "sample", port: 443 };
  return sampleApiService({ port: 443, caBundle: "" }, { version, group, service });
}

async function opened(t: Parameters<typeof ApiWorld.open>[0]) {
  const backends = new FakeBackends();
  const services = new Map([["sample.default", "127.0.0.1:1"]]);
  const places = { usesEndpoints: false, services };
  const world = await ApiWorld.open(t, { places }, undefined, { backends });
  const add = (version: string, group = GROUP) =>
    world.ok(API_SERVICES, { method: "POST", body: apiService(version, group) });
  const available = async (name: string): Promise<boolean> => {
    const { status } = await world.ok(`${API_SERVICES}/${name}`);
    return status.conditions?.[0].status === "True";
  };
  return { world, backends, add, available };
}

/** Far longer than what is waited for takes on a busy machine. */
const MAX_LOOKS = 20_000;

async function until(
  holds: () => Promise<boolean> | boolean,
  seen: () => string = () => "",
): Promise<void> {
  for (let look = 0; !(await holds()); look++) {
    if (look === MAX_LOOKS) assert.fail(`waited in vain for ${holds}; ${seen()}`);
    await delay(5);
  }
}

test("More requests than may go on at a time find the service unavailable", async (t) => {
  const { world, backends, add, available } = await opened(t);
  await add("v1");
  await until(() => available(`v1.${GROUP}`));
  const path = `/apis/${GROUP}/v1/widgets?watch=1`;
  const watches = Array.from({ length: MAX_FORWARDED_REQUESTS }, () => world.start(path));
  await until(
    () => {
      // A watch that was refused, as the server was looked at anew, is made again.
      for (const [i, { state }] of watches.entries())
        if (state === "ended") watches[i] = world.start(path);
      return backends.open === MAX_FORWARDED_REQUESTS;
    },
    () => `${backends.open} are open`,
  );
  const refused = await world.request(path);
  assert.deepEqual([refused.status, refused.text], [503, "service unavailable\n"]);
  world.plane.endWatches();
  await until(() => backends.open === 0);
});

test("A document that is too long, or none, is left out", async (t) => {
  const { world, backends, add, available } = await opened(t);
  backends.documentBytes = MAX_OPENAPI_BYTES + 1;
  assert.ok(backends.documentBytes > MAX_DISCOVERY_BYTES);
  await add("v1");
  await until(() => available(`v1.${GROUP}`));
  await until(() => backends.asked.has("/openapi/v2"));
  const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  const { items } = await world
    .request("/apis", { headers: { accept } })
    .then(({ text }) => JSON.parse(text));
  const found = items.find(
    ({ metadata }: { metadata: { name: string } }) => metadata.name === GROUP,
  );
  assert.deepEqual(found.versions, [{ version: "v1", freshness: "Stale" }]);
  const paths = Object.keys((await world.ok("/openapi/v2")).paths);
  assert.ok(!paths.some((one) => one.includes(GROUP)));
});

test("APIServices beyond the bound are not served", async (t) => {
  const { world, add } = await opened(t);
  const names = Array.from({ length: MAX_REMOTE_SERVICES + 1 }, (_, i) => `g${i}.example.com`);
  for (const group of names) await add("v1", group);
  const served = async () => {
    const { groups } = await world.ok("/apis");
    return groups.filter(({ name }: { name: string }) => name.endsWith(".example.com")).length;
  };
  await until(async () => (await served()) >= MAX_REMOTE_SERVICES);
  // The last one was seen, too.
  await world.ok(`${API_SERVICES}/v1.${names.at(-1)}`, { method: "DELETE" });
  await delay(50);
  assert.equal(await served(), MAX_REMOTE_SERVICES);
});

test("A response that is late or too long is an error", async () => {
  const place = { host: "a", port: 1, serverName: "a", caPem: undefined, isInsecure: false };
  const get = { place, method: "GET", headers: {}, body: new Uint8Array() };
  const backends = new FakeBackends();
  const bounds = { timeoutMs: 10, maxBytes: 1 };
  const ask = (path: string) => wholeResponse(backends, { ...get, path }, bounds, nodeClock);
  await assert.rejects(ask("/"), /more than 1 bytes/);
  await assert.rejects(ask("/watch"), /context deadline exceeded/);
});

test("The published authorities are those of all servers, up to a bound", async (t) => {
  const { world } = await opened(t);
  const pem = (i: number) => `-----BEGIN CERTIFICATE-----\n${i}\n-----END CERTIFICATE-----\n`;
  const client = world.plane.client;
  const publish = (clientCaPem: string, name: string) =>
    publishTrust(client, {
      clientCaPem,
      requestHeaderCaPem: pem(0),
      proxies: { ...DEFAULT_SERVE_OPTIONS.proxies, allowedNames: [name] },
    });
  const dataOf = async () =>
    (await world.ok("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"))
      .data;
  await publish(pem(1), "one");
  await publish(pem(2), "two");
  await publish(pem(1), "one");
  assert.equal((await dataOf())["client-ca-file"], pem(1) + pem(2));
  assert.equal((await dataOf())["requestheader-allowed-names"], '["one","two"]');
  for (let i = 3; i < MAX_PUBLISHED_CERTIFICATES + 3; i++) await publish(pem(i), "two");
  const kept = (await dataOf())["client-ca-file"].split("-----BEGIN").length - 1;
  assert.equal(kept, MAX_PUBLISHED_CERTIFICATES);
});
