/** A channel on sockets: dials, its texts when that fails, TLS, and a server that is restarted. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { handshakeFailure, nodeClock } from "@quorate/host/node";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import { Channel } from "@quorate/rpc/client";
import { createAuthority } from "../../../scripts/certs.ts";
import { startServer } from "./helpers/server.ts";

const echo = { "/s/Echo": (request: Uint8Array) => request };

function channelTo(port: number, options: object = {}): Channel {
  const address = `127.0.0.1:${port}`;
  const all = {
    endpoint: address,
    address,
    tls: undefined,
    dialTimeoutMs: 30_000,
    handshakeFailure,
    ...options,
  };
  return new Channel(all, nodeClock);
}

/** Calls Echo; resolves with what came back, rejects with the status. */
async function call(channel: Channel, text: string): Promise<string> {
  const connection = await channel.connect();
  return new Promise((resolve, reject) => {
    let response = "";
    const started = connection.call(
      { path: "/s/Echo", metadata: [], timeoutMs: undefined },
      {
        message: (bytes) => {
          response = toUtf8(bytes);
        },
        ended: (status) => (status.code === 0 ? resolve(response) : reject(status)),
      },
    );
    started!.send(fromUtf8(text), true);
  });
}

test("one dial for all callers; another after the server has closed the connection", async (t) => {
  const running = await startServer(t, { unary: echo });
  const channel = channelTo(running.port);
  t.after(() => channel.close());
  const texts = ["a", "b".repeat(300_000), "c"];
  assert.deepEqual(await Promise.all(texts.map((text) => call(channel, text))), texts);
  assert.equal(channel.connections, 1);
  channel.close();
  await assert.rejects(channel.connect(), { code: 1 });
});

test("TLS, verified or not", async (t) => {
  const authority = await createAuthority("ca");
  const { certPem, keyPem } = await authority.issue({
    commonName: "server",
    hosts: ["127.0.0.1", "localhost"],
    usage: "both",
  });
  const running = await startServer(t, { unary: echo, tls: { certPem, keyPem } });
  const tls = () => ({ ca: authority.caPem, ALPNProtocols: ["h2"], servername: "" });
  const channel = channelTo(running.port, { tls });
  t.after(() => channel.close());
  assert.equal(await call(channel, "x"), "x");
  const unknown = channelTo(running.port, { tls: () => ({ ALPNProtocols: ["h2"] }) });
  t.after(() => unknown.close());
  await assert.rejects(unknown.connect(), {
    code: 14,
    message: /authentication handshake failed: tls: failed to verify certificate/,
  });
  const unreadable = channelTo(running.port, {
    tls: () => {
      throw new Error("no such file");
    },
  });
  await assert.rejects(unreadable.connect(), { message: /no such file/ });
});

test("servers that are not there, do not answer, or speak something else", async (t) => {
  const silent = createServer().listen(0, "127.0.0.1");
  const web = createServer((socket) => {
    socket.on("error", () => {});
    socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
  }).listen(0, "127.0.0.1");
  await Promise.all([once(silent, "listening"), once(web, "listening")]);
  const [silentPort, webPort] = [silent, web].map(
    (server) => (server.address() as AddressInfo).port,
  );
  t.after(() => {
    web.close();
    silent.close();
  });
  const late = channelTo(silentPort, { dialTimeoutMs: 50 });
  await assert.rejects(late.connect(), { code: 14, message: /i\/o timeout/ });
  await assert.rejects(channelTo(webPort).connect(), { code: 14 });
  const gone = createServer().listen(0, "127.0.0.1");
  await once(gone, "listening");
  const { port } = gone.address() as AddressInfo;
  gone.close();
  await once(gone, "close");
  const channel = channelTo(port);
  const refused = {
    code: 14,
    message:
      `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:${port}: ` +
      'connect: connection refused"',
  };
  await assert.rejects(channel.connect(), refused);
  await assert.rejects(channel.connect(), refused, "at once, within the backoff");
  assert.equal(channel.connections, 0);
});
