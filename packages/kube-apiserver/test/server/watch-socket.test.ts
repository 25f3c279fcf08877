/** Watches over WebSocket, with a browser's way to send a token. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { metaProtobuf } from "@quorate/kube-storage";
import WebSocket from "ws";
import { parse } from "yaml";
import { until } from "../../../../test/support/until.ts";
import { type RunningApiServer, startApiServer } from "../../node/start.ts";
import { MAX_CLIENT_MESSAGE_BYTES } from "../../node/watch-sockets.ts";
import { fromBase64Url, socketProtocols } from "../../src/authn/socket-protocols.ts";

const TOKEN = "secret-tökén";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const PREFIX = "base64url.bearer.authorization.k8s.io.";
let api: RunningApiServer;
const dir = mkdtempSync(join(tmpdir(), "watch-socket-"));

before(async () => {
  const tokenAuthFile = join(dir, "tokens.csv");
  writeFileSync(tokenAuthFile, `${TOKEN},jane,1,"system:masters"\n`);
  api = await startApiServer({ tokenAuthFile });
});
after(async () => {
  await api.stop();
  rmSync(dir, { recursive: true, force: true });
});

const withToken = `${PREFIX}${Buffer.from(TOKEN).toString("base64url")}`;

interface Opened {
  readonly socket: WebSocket;
  readonly messages: { readonly bytes: Buffer; readonly isBinary: boolean }[];
  /** The status of a refusal; 101 where it is open. */
  readonly status: number;
  readonly closed: Promise<number>;
}

async function open(
  query: string,
  protocols: readonly string[],
  options: WebSocket.ClientOptions = {},
): Promise<Opened> {
  const url = `${api.url.replace("https", "wss")}${CONFIG_MAPS}?watch=1${query}`;
  const socket = new WebSocket(url, [...protocols], { ca: api.ca, ...options });
  const messages: Opened["messages"] = [];
  socket.on("message", (bytes: Buffer, isBinary) => messages.push({ bytes, isBinary }));
  const closed = new Promise<number>((resolve) => socket.once("close", resolve));
  const status = await new Promise<number>((resolve, reject) => {
    socket.once("open", () => resolve(101));
    socket.once("unexpected-response", (request, response) => {
      request.destroy();
      resolve(response.statusCode ?? 0);
    });
    socket.once("error", reject);
  });
  return { socket, messages, status, closed };
}

const configMap = (name: string) =>
  api.request(CONFIG_MAPS, {
    method: "POST",
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name } },
  });

test("Events are messages of text; the client's end is the end of the watch", async () => {
  const { socket, messages, status } = await open("", [withToken, "json.k8s.io"]);
  assert.deepEqual([status, socket.protocol], [101, "json.k8s.io"]);
  assert.equal(api.plane.server.watches.count > 0, true);
  await configMap("one");
  const names = () =>
    messages.map(({ bytes, isBinary }) => {
      assert.equal(isBinary, false);
      const { type, object } = JSON.parse(bytes.toString());
      return `${type} ${object.metadata.name}`;
    });
  await until("the event comes", () => names().includes("ADDED one"));
  const { openRequests } = api.plane.server;
  socket.close();
  await until("the watch is over", () => api.plane.server.openRequests < openRequests);
});

test("Events of protobuf are messages of bytes without a length", async () => {
  await configMap("two");
  const accept = "application/vnd.kubernetes.protobuf;stream=watch";
  const { socket, messages } = await open("", [withToken, "x"], { headers: { accept } });
  await until("an event comes", () => messages.length > 0);
  const { bytes, isBinary } = messages[0];
  // 1: "ADDED", then 2: the object, whose envelope begins within its RawExtension.
  assert.deepEqual([isBinary, bytes[0], bytes.subarray(2, 7).toString()], [true, 0x0a, "ADDED"]);
  const envelope = bytes.subarray(bytes.indexOf("k8s\0"));
  assert.equal(metaProtobuf.unwrap(envelope).kind, "ConfigMap");
  socket.close();
});

test("The server closes when the watch is over, and for a message that is too long", async () => {
  const short = await open("&timeoutSeconds=1", [withToken, "x"]);
  assert.equal(await short.closed, 1000);
  const gone = await open("&resourceVersion=1&resourceVersionMatch=x", [withToken, "x"]);
  assert.equal(gone.status, 422);
  const long = await open("", [withToken, "x"]);
  long.socket.send("hello");
  long.socket.send(Buffer.alloc(MAX_CLIENT_MESSAGE_BYTES + 1));
  assert.equal(await long.closed, 1009);
});

test("A token must be whole, single and beside another subprotocol", async () => {
  const wrong = Buffer.from("wrong").toString("base64url");
  for (const protocols of [
    [`${PREFIX}${wrong}`, "x"],
    [`${PREFIX}@`, "x"],
    [withToken],
    [withToken, `${withToken}A`, "x"],
  ]) {
    const headers = { "sec-websocket-protocol": protocols.join(", ") };
    assert.equal((await open("", [], { headers })).status, 401, protocols.join());
  }
  // Without any token it is the anonymous user.
  assert.equal((await open("", [])).status, 403);
  const headers = new Map([["sec-websocket-protocol", `b, ${PREFIX}, a`]]);
  const head = { method: "GET", path: "/", query: "", headers, peerAddress: "" };
  const found = socketProtocols({ ...head, peerCommonName: undefined });
  assert.deepEqual(found, { token: undefined, chosen: "b" });
  assert.equal(fromBase64Url("a"), undefined);
  assert.equal(fromBase64Url("_w"), undefined);
});

test("A page of another site cannot use a browser's certificate", async () => {
  const { users } = parse(api.kubeconfig) as {
    users: { user: { "client-certificate-data": string; "client-key-data": string } }[];
  };
  const decoded = (text: string) => Buffer.from(text, "base64").toString();
  const [{ user }] = users;
  const cert = decoded(user["client-certificate-data"]);
  const key = decoded(user["client-key-data"]);
  const foreign = await open("", [], { cert, key, origin: "https://evil.example" });
  assert.equal(foreign.status, 403);
  for (const origin of [api.url, undefined]) {
    const own = await open("", [], { cert, key, origin });
    assert.equal(own.status, 101);
    own.socket.terminate();
  }
  const withOwnToken = await open("", [withToken, "x"], { origin: "https://console.example" });
  assert.equal(withOwnToken.status, 101);
  withOwnToken.socket.terminate();
});
