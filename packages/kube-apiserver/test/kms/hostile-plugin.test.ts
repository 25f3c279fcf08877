/** KMS plugins that answer slowly, hugely or wrongly, on unix sockets: each call fails. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import { createServer as createTcp, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { encodeStatus, MAX_FIELDS } from "../../node/encryption/kms-messages.ts";
import { PluginClient } from "../../node/encryption/kms-plugin-client.ts";
import { KmsProvider } from "../../node/encryption/kms-provider.ts";

const dir = mkdtempSync(join(tmpdir(), "kms-"));
const sockets = new Set<Socket>();
const servers: Server[] = [];
after(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
  rmSync(dir, { recursive: true, force: true });
});

function keep(socket: Socket): void {
  sockets.add(socket);
  socket.on("error", () => {});
  socket.on("close", () => sockets.delete(socket));
}

let count = 0;

/** The error of reading the status of a plugin behind the server. */
async function problemOf(server: Server): Promise<string> {
  const path = join(dir, `${count++}.sock`);
  servers.push(server);
  server.on("connection", keep);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const client = new PluginClient({ endpoint: `unix://${path}`, timeoutMs: 1000 }, nodeClock);
  const provider = new KmsProvider("vault", client, { clock: nodeClock, logger: silentLogger });
  try {
    await provider.start();
    assert.ok(provider.problem !== undefined, "the plugin is well");
    assert.ok(provider.problem.length < 1000, `${provider.problem.length} characters`);
    await assert.rejects(async () => provider.toStorage("/key", Uint8Array.of(1)), /KMS provider/);
    return provider.problem;
  } finally {
    provider.close();
  }
}

const connections: readonly (readonly [name: string, serve: (socket: Socket) => void, RegExp])[] = [
  ["nothing", () => {}, /i\/o timeout/],
  ["no HTTP/2", (socket) => socket.write("SSH-2.0-x\r\n".repeat(1000)), /before server preface/],
  ["the end", (socket) => socket.end(), /./],
  [
    "frames without end",
    (socket) => {
      const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
      const more = (): void => {
        while (!socket.destroyed && socket.write(settings));
      };
      socket.on("drain", more);
      more();
    },
    /./,
  ],
];
for (const [name, serve, problem] of connections)
  test(`a plugin's connection brings ${name}`, async () => {
    const server = createTcp((socket) => {
      keep(socket);
      socket.resume();
      serve(socket);
    });
    assert.match(await problemOf(server), problem);
  });

function message(bytes: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

const status = (more: object = {}): Uint8Array =>
  encodeStatus({ version: "v2", healthz: "ok", keyId: "key", ...more });
const sends = (bytes: Buffer) => (stream: ServerHttp2Stream) => stream.end(bytes);

const answers: readonly (readonly [
  name: string,
  serve: (stream: ServerHttp2Stream) => void,
  problem: RegExp,
])[] = [
  ["nothing", () => {}, /within 1000 ms|deadline/i],
  [
    "half a message",
    (stream) => stream.write(message(status()).subarray(0, 8)),
    /1000 ms|deadline/i,
  ],
  ["no message", (stream) => stream.end(), /no response/],
  [
    "two messages",
    sends(Buffer.concat([message(status()), message(status())])),
    /more than one response/,
  ],
  [
    "messages without end",
    (stream) => {
      const many = Buffer.concat(Array.from({ length: 1000 }, () => message(status())));
      const more = (): void => {
        while (!stream.destroyed && stream.write(many));
      };
      stream.on("drain", more);
      more();
    },
    /more than one response/,
  ],
  [
    "a message that is too long",
    sends(message(new Uint8Array(300 * 1024))),
    /larger than max|code = 8/,
  ],
  [
    "the announcement of a huge one",
    (stream) => stream.write(Buffer.from([0, 0xff, 0xff, 0xff, 0xff])),
    /larger than max|code = 8/,
  ],
  [
    "many fields",
    sends(message(new Uint8Array(200_000).fill(8, 0, 200_000))),
    /more than 1024 fields/,
  ],
  ["bytes that are no message", sends(message(Buffer.from("ffffffffffff", "hex"))), /./],
  ["a long state", sends(message(status({ healthz: "x".repeat(100_000) }))), /unexpected healthz/],
  ["a long version", sends(message(status({ version: "x".repeat(100_000) }))), /expected KMSv2/],
  ["a long key id", sends(message(status({ keyId: "x".repeat(100_000) }))), /exceeds the max size/],
  ["no key id", sends(message(status({ keyId: "" }))), /keyID is empty/],
];
for (const [name, serve, problem] of answers)
  test(`a plugin answers with ${name}`, async () => {
    assert.equal(MAX_FIELDS, 1024);
    const server = createHttp2();
    server.on("session", (session) => session.on("error", () => {}));
    server.on("stream", (stream: ServerHttp2Stream) => {
      stream.on("error", () => {});
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      const headers = { ":status": 200, "content-type": "application/grpc" };
      stream.respond(headers, { waitForTrailers: true });
      serve(stream);
    });
    assert.match(await problemOf(server as unknown as Server), problem);
  });
