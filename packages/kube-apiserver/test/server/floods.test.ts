/**
 * Floods of clients without credentials, or with wrong ones, over real sockets: an authenticated
 * client is served meanwhile, on connections that it has and on new ones.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { gzipSync } from "node:zlib";
import { Agent, request } from "undici";
import { until } from "../../../../test/support/until.ts";
import { type RunningApiServer, startApiServer } from "../../node/start.ts";

/** More with QUORATE_SOAK. */
const SIZE = process.env["QUORATE_SOAK"] === "1" ? 2000 : 200;
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const TOKENS = `jane-token,jane,1,"system:masters"\npoor-token,poor,2,"poor"\n`;
const JANE = { authorization: "Bearer jane-token" };

let api: RunningApiServer;
const dir = mkdtempSync(join(tmpdir(), "floods-"));
const target = () => ({ host: "127.0.0.1", port: Number(new URL(api.url).port) });

before(async () => {
  const tokenAuthFile = join(dir, "tokens.csv");
  writeFileSync(tokenAuthFile, TOKENS);
  api = await startApiServer({ tokenAuthFile });
});
after(async () => {
  await api.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** One request on a connection of its own, or of `dispatcher`. */
async function send(path: string, headers: Record<string, string>, options = {}, own?: Agent) {
  const dispatcher = own ?? new Agent({ connect: { ca: api.ca } });
  try {
    const { statusCode, body } = await request(api.url + path, { dispatcher, headers, ...options });
    return { status: statusCode, text: await body.text() };
  } finally {
    if (own === undefined) await dispatcher.close();
  }
}

/** An authenticated client reads and writes, on a new connection. */
async function isServed(name: string): Promise<void> {
  const body = JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });
  const headers = { ...JANE, "content-type": "application/json" };
  assert.equal((await send(CONFIG_MAPS, headers, { method: "POST", body })).status, 201);
  assert.equal((await send(`${CONFIG_MAPS}/${name}`, JANE)).status, 200);
  // The connection of the admin's client has been there since the start.
  assert.equal((await api.request("/readyz")).status, 200);
}

function closeAll(sockets: readonly { destroy(): unknown }[]): void {
  for (const socket of sockets) socket.destroy();
}

async function tcp(): Promise<Socket> {
  const socket = connectTcp(target());
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  return socket;
}

async function tls(): Promise<Socket> {
  const socket = connectTls({ ...target(), ca: api.ca, servername: "localhost" });
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("secureConnect", resolve));
  return socket;
}

async function http2(): Promise<ClientHttp2Session> {
  const session = connectHttp2(api.url, { ca: api.ca });
  session.on("error", () => {});
  await new Promise<void>((resolve) => session.once("connect", () => resolve()));
  return session;
}

test("connections that never begin a TLS handshake", async () => {
  const sockets = await Promise.all(Array.from({ length: SIZE }, tcp));
  await isServed("half-open");
  closeAll(sockets);
});

test("requests whose headers and bodies do not come to an end", async () => {
  const sockets = await Promise.all(Array.from({ length: SIZE / 4 }, tls));
  let refused = 0;
  for (const [at, socket] of sockets.entries()) {
    socket.on("data", (bytes: Buffer) => {
      if (bytes.toString("latin1").startsWith("HTTP/1.1 403")) refused++;
    });
    if (at % 2 === 0) socket.write("GET /version HTTP/1.1\r\nhost: x\r\nx-slow: ");
    else socket.write(`POST ${CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{`);
  }
  await isServed("slow");
  // Without permission the body is not waited for.
  await until("the posts are refused", () => refused >= sockets.length / 2 - 1);
  closeAll(sockets);
});

test("wrong tokens: 401 for each, and no end of memory", async () => {
  const own = new Agent({ connect: { ca: api.ca }, connections: 8 });
  const jwt = (n: number) =>
    ["header", `payload ${n}`, "x".repeat(300)].map((t) => Buffer.from(t).toString("base64url"));
  const flood = Array.from({ length: SIZE }, (_, n) => {
    const token = n % 2 === 0 ? `wrong-${n}` : jwt(n).join(".");
    return send(CONFIG_MAPS, { authorization: `Bearer ${token}` }, {}, own);
  });
  await isServed("wrong-tokens");
  for (const { status } of await Promise.all(flood)) assert.equal(status, 401);
  await own.close();
});

test("streams that are reset at once", async () => {
  const quiet = await http2();
  const hasty = await http2();
  for (let i = 0; i < SIZE * 10 && !hasty.destroyed && !hasty.closed; i++) {
    const stream = hasty.request({ ":path": CONFIG_MAPS });
    stream.on("error", () => {});
    stream.once("ready", () => stream.close(constants.NGHTTP2_CANCEL));
    if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await isServed("resets");
  const stream = quiet.request({ ":path": "/version", ...JANE });
  const status = await new Promise((resolve) => {
    stream.once("response", (headers) => resolve(headers[":status"]));
  });
  assert.equal(status, 200);
  quiet.destroy();
  hasty.destroy();
  await until("no request is left", () => api.plane.server.openRequests === 0);
});

test("bodies that are too long, or are compressed without end", async () => {
  const own = new Agent({ connect: { ca: api.ca }, connections: 8 });
  const body = Buffer.alloc(3 * 1024 * 1024 + 1, 0x20);
  const json = { "content-type": "application/json" };
  const post = (headers: Record<string, string>, sent: Buffer) =>
    send(CONFIG_MAPS, { ...json, ...headers }, { method: "POST", body: sent }, own).catch(
      // The server may close while the client still sends.
      () => ({ status: 413, text: "" }),
    );
  const flood = Array.from({ length: 20 }, () => post(JANE, body));
  await isServed("bodies");
  for (const { status } of await Promise.all(flood)) assert.ok([413, 503].includes(status));
  // Bodies are not decompressed, as in Kubernetes.
  const bomb = gzipSync(Buffer.alloc(32 * 1024 * 1024));
  const answer = await post({ ...JANE, "content-encoding": "gzip" }, bomb);
  assert.equal(answer.status, 400);
  await own.close();
});

test("watches: refused without permission, and idle ones do not take seats", async () => {
  // A connection has 1000 streams at most; further ones would wait for the end of a watch.
  const count = Math.ceil((SIZE * 2) / 500);
  const sessions = await Promise.all(Array.from({ length: count }, http2));
  const open = (headers: Record<string, string>, at: number) => {
    const session = sessions[at % count]!;
    const stream = session.request({ ":path": `${CONFIG_MAPS}?watch=1`, ...headers });
    stream.on("error", () => {});
    return new Promise<number>((resolve) => {
      stream.once("response", (head) => resolve(Number(head[":status"])));
    });
  };
  const poor = { authorization: "Bearer poor-token" };
  const refused = await Promise.all(Array.from({ length: SIZE / 4 }, (_, at) => open(poor, at)));
  assert.ok(refused.every((status) => status === 403));
  const opened = await Promise.all(Array.from({ length: SIZE * 2 }, (_, at) => open(JANE, at)));
  assert.ok(opened.every((status) => status === 200));
  assert.ok(api.plane.server.watches.count >= SIZE * 2);
  await isServed("watches");
  for (const session of sessions) session.destroy();
  await until("the watches are over", () => api.plane.server.watches.count < SIZE * 2);
});
