/** Calls of webhooks over real TLS connections. */
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { after, test } from "node:test";
import { Canceller } from "@quorate/kube-storage";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import { createAuthority } from "../../../../scripts/certs.ts";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
} from "../../../../test/support/certs.ts";
import { HttpsWebhookCaller, MAX_CONNECTIONS_TO_A_WEBHOOK } from "../../node/webhook-caller.ts";
import {
  MAX_WEBHOOK_RESPONSE_BYTES,
  type WebhookCallError,
  type WebhookClientConfig,
} from "../../src/admission/webhook-caller.ts";

const ca = await createAuthority("webhooks");
const leaf = await ca.issue({
  commonName: "webhook",
  hosts: ["127.0.0.1", "hook.operators.svc"],
  usage: "server",
});
let respond: (request: IncomingMessage, response: ServerResponse) => void = () => {};
let connections = 0;
const sockets = new Set<Socket>();
const server = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (request, response) =>
  respond(request, response),
);
server.on("connection", (socket: Socket) => {
  connections++;
  sockets.add(socket);
  socket.on("close", () => sockets.delete(socket));
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const { port } = server.address() as AddressInfo;
const caBundle = Buffer.from(ca.caPem).toString("base64");
const services = new Map([["hook.operators", `127.0.0.1:${port}`]]);
const caller = new HttpsWebhookCaller({ services });

after(async () => {
  await caller.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

const url = `https://127.0.0.1:${port}/review`;
const body = fromUtf8('{"a":1}');

function call(config: WebhookClientConfig, timeoutMs = 5000, signal?: Canceller) {
  return caller.call({ config, body, timeoutMs, signal });
}

async function failure(work: Promise<unknown>): Promise<string> {
  const error = (await work.then(
    () => assert.fail("the call did not fail"),
    (it: unknown) => it,
  )) as WebhookCallError;
  return `${error.code}: ${error.message}`;
}

function echo(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const text = Buffer.concat(chunks).toString();
    response.end(`${request.method} ${request.url} ${request.headers["content-type"]} ${text}`);
  });
}

test("a call posts JSON with the timeout, and connections are used again", async () => {
  respond = echo;
  const before = connections;
  for (let i = 0; i < 10; i++) {
    const response = await call({ url, caBundle });
    assert.equal(response.status, 200);
    assert.equal(toUtf8(response.body), 'POST /review?timeout=5s application/json {"a":1}');
  }
  assert.ok(connections - before <= 2);
});

test("connections to a webhook are bounded; more calls wait for them", async () => {
  respond = (_request, response) => setImmediate(() => response.end("ok"));
  const before = connections;
  const calls = Array.from({ length: 100 }, () => call({ url, caBundle }, 20_000));
  const statuses = await Promise.all(calls);
  assert.equal(statuses.length, 100);
  assert.ok(connections - before <= MAX_CONNECTIONS_TO_A_WEBHOOK);
});

test("a service is called where the map says, and proves its name", async () => {
  respond = echo;
  const service = { name: "hook", namespace: "operators", path: "/x" };
  const response = await call({ service, caBundle });
  assert.match(toUtf8(response.body), /^POST \/x\?timeout=5s /);
  const unknown = await failure(call({ service: { ...service, name: "other" }, caBundle }));
  assert.match(unknown, /^Config: .*service "other" not found in namespace "operators"/);
});

test("the CA decides whether a webhook is believed", async () => {
  const other = await createAuthority("other");
  const wrong = Buffer.from(other.caPem).toString("base64");
  assert.match(
    await failure(call({ url, caBundle: wrong })),
    /^Unreachable: Post .*tls: failed to verify/,
  );
  assert.match(await failure(call({ url })), /tls: failed to verify certificate: x509/);
  assert.match(
    await failure(call({ url, caBundle: "AAAA" })),
    /^Config: .*unable to parse bytes as PEM/,
  );
  assert.match(await failure(call({ url: "http://127.0.0.1/", caBundle })), /^Config: /);
  assert.match(await failure(call({})), /must have either service or URL$/);
});

test("a webhook that is slow, gone or too talkative ends in an error", async () => {
  respond = () => {};
  assert.equal(
    await failure(call({ url, caBundle }, 60)),
    `Timeout: Post "${url}?timeout=1s": context deadline exceeded`,
  );
  respond = (request) => request.socket.destroy();
  assert.match(await failure(call({ url, caBundle })), /^Unreachable: Post .*: EOF$/);
  respond = (_request, response) => {
    response.write(Buffer.alloc(MAX_WEBHOOK_RESPONSE_BYTES));
    response.end("x");
  };
  assert.match(await failure(call({ url, caBundle })), /^TooLarge: the response has more than/);
  const free = "https://127.0.0.1:1/";
  assert.match(
    await failure(call({ url: free, caBundle })),
    /dial tcp 127\.0\.0\.1:1: connect: connection refused$/,
  );
});

test("a request that is cancelled ends its calls", async () => {
  respond = () => {};
  const signal = new Canceller();
  const work = call({ url, caBundle }, 20_000, signal);
  setImmediate(() => signal.abort(new Error("the client is gone")));
  await assert.rejects(work, /the client is gone/);
});

test("calls under way and places with connections are bounded", async () => {
  respond = () => {};
  const small = new HttpsWebhookCaller({ services, maxRunning: 8, maxPlaces: 3 });
  const signal = new Canceller();
  const send = (config: WebhookClientConfig) =>
    small.call({ config, body, timeoutMs: 20_000, signal });
  const many = Array.from({ length: 8 }, () => send({ url, caBundle }).catch(() => {}));
  assert.equal(await failure(send({ url })), "Busy: too many webhooks are being called");
  signal.abort(new Error("the test is over"));
  await Promise.all(many);
  for (let i = 2; i < 8; i++) {
    const config = { url: `https://127.0.0.${i}:1/`, caBundle };
    await small.call({ config, body, timeoutMs: 5000 }).catch(() => {});
  }
  assert.equal(small.places, 3);
  await small.close();
});

test("a server's own certificate, and an intermediate one, are trusted as the caBundle", async (t) => {
  const root = makeAuthority("root");
  const intermediate = makeCertificate({ name: "intermediate", issuer: root, isCa: true });
  const alone = makeCertificate({ name: "alone", ipAddresses: ["127.0.0.1"] });
  const signed = makeLocalCertificate(intermediate, "signed");
  for (const [name, pair, trusted] of [
    ["self-signed", alone, alone],
    ["its issuer's root is absent", signed, intermediate],
    ["its issuer is absent", signed, signed],
  ] as const) {
    const place = createServer({ cert: pair.certPem, key: pair.keyPem }, echo);
    await new Promise<void>((resolve) => place.listen(0, "127.0.0.1", resolve));
    t.after(() => place.close());
    const at = `https://127.0.0.1:${(place.address() as AddressInfo).port}/review`;
    const bundleOf = (pem: string): string => Buffer.from(pem).toString("base64");
    const { status } = await call({ url: at, caBundle: bundleOf(trusted.certPem) });
    assert.equal(status, 200, name);
    const other = await failure(call({ url: at, caBundle: bundleOf(ca.caPem) }));
    assert.match(other, /certificate/, name);
  }
});

test("a caBundle may be the serving certificate itself, as that of envtest", async () => {
  respond = echo;
  const own = Buffer.from(leaf.certPem).toString("base64");
  assert.equal((await call({ url, caBundle: own })).status, 200);
});

test("paths are cleaned as by path.Join", async () => {
  respond = (received, response) => response.end(received.url);
  const paths = async (config: WebhookClientConfig) => toUtf8((await call(config)).body);
  const at = (path: string) => paths({ url: `https://127.0.0.1:${port}${path}`, caBundle });
  assert.equal(await at("//a/../review//b/"), "/review/b?timeout=5s");
  assert.equal(await at(""), "/?timeout=5s");
  const service = { name: "hook", namespace: "operators", path: "//mutate/" };
  assert.equal(await paths({ service, caBundle }), "/mutate?timeout=5s");
});
