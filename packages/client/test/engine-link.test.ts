/**
 * The link over our own engine, against node:http2: limits, deadlines, waiting for streams,
 * backpressure, and servers that are none.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
  type Settings,
} from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { EngineLink, type EngineLinkOptions } from "../node/engine-link.ts";
import { parseEndpoint } from "../src/endpoint.ts";
import { LinkError } from "../src/link.ts";

const LONG_MS = 60_000;
const HEAD = { ":status": 200, "content-type": "application/grpc" };

/** A gRPC message with its prefix. */
function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function respond(stream: ServerHttp2Stream, message: Uint8Array): void {
  stream.respond(HEAD, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(framed(message));
}

type Handler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

async function listening(t: TestContext, server: Server | Http2Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  (server as Server).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

async function serve(t: TestContext, handler: Handler, settings: Settings = {}): Promise<number> {
  const server = createHttp2Server({ settings });
  server.on("stream", handler);
  return listening(t, server);
}

function linkTo(t: TestContext, port: number, more: Partial<EngineLinkOptions> = {}): EngineLink {
  const endpoint = parseEndpoint(`127.0.0.1:${port}`, false);
  const link = new EngineLink(endpoint, {
    tls: undefined,
    dialTimeoutMs: LONG_MS,
    maxRequestBytes: Number.POSITIVE_INFINITY,
    limits: {},
    ...more,
  });
  t.after(() => link.close());
  return link;
}

function call(link: EngineLink, timeoutMs = LONG_MS, bytes = 3): Promise<Uint8Array> {
  return link.call("/s/Do", new Uint8Array(bytes), { token: undefined }, LONG_MS, timeoutMs);
}

async function failure(work: Promise<unknown>): Promise<readonly [number, string, boolean]> {
  const error = await work.then(
    () => assert.fail("it succeeded"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof LinkError, String(error));
  return [error.grpcCode, error.message, error.sent];
}

test("a call with its metadata", async (t) => {
  const seen: IncomingHttpHeaders[] = [];
  const port = await serve(t, (stream, headers) => {
    seen.push(headers);
    respond(stream, Buffer.from("hello"));
  });
  const link = linkTo(t, port);
  const metadata = { token: "t1", requireLeader: true };
  const response = await link.call("/s/Do", new Uint8Array(1), metadata, LONG_MS, LONG_MS);
  assert.equal(Buffer.from(response).toString(), "hello");
  assert.deepEqual([seen[0].token, seen[0].hasleader, seen[0][":path"]], ["t1", "true", "/s/Do"]);
});

test("messages above the limits", async (t) => {
  const port = await serve(t, (stream) => respond(stream, new Uint8Array(1000)));
  const small = linkTo(t, port, { maxRequestBytes: 10 });
  assert.deepEqual(await failure(call(small, LONG_MS, 11)), [
    8,
    "trying to send message larger than max (11 vs. 10)",
    false,
  ]);
  assert.equal((await call(small)).length, 1000);
  const strict = linkTo(t, port, { limits: { maxMessageBytes: 999 } });
  assert.deepEqual(await failure(call(strict)), [
    8,
    "grpc: received message larger than max (1000 vs. 999)",
    true,
  ]);
});

test("a call without a response ends at its deadline, and others go on", async (t) => {
  let streams = 0;
  const port = await serve(t, (stream) => {
    stream.on("error", () => {});
    if (streams++ !== 1) respond(stream, new Uint8Array(0));
  });
  const link = linkTo(t, port);
  // Now there is a connection: the next call is sent at once.
  await call(link);
  assert.deepEqual(await failure(call(link, 500)), [4, "no response in time", true]);
  assert.equal((await call(link)).length, 0);
});

test("a call whose time is over is not sent", async (t) => {
  let calls = 0;
  const port = await serve(t, (stream) => {
    calls++;
    respond(stream, new Uint8Array(0));
  });
  const link = linkTo(t, port);
  assert.deepEqual(await failure(call(link, 1e-6)), [4, "no response in time", false]);
  await call(link);
  assert.deepEqual(await failure(call(link, 1e-6)), [4, "no response in time", false]);
  assert.equal(calls, 1);
});

test("calls beyond the server's limit of streams wait for their turn", async (t) => {
  let open = 0;
  let most = 0;
  const port = await serve(
    t,
    (stream) => {
      most = Math.max(most, ++open);
      stream.on("close", () => open--);
      setImmediate(() => respond(stream, new Uint8Array(0)));
    },
    { maxConcurrentStreams: 2 },
  );
  const link = linkTo(t, port);
  await call(link);
  await Promise.all(Array.from({ length: 50 }, () => call(link)));
  assert.equal(most, 2);
});

test("a call that waits for its turn ends at its deadline", async (t) => {
  const port = await serve(t, (stream) => void stream.on("error", () => {}), {
    maxConcurrentStreams: 1,
  });
  const link = linkTo(t, port);
  const first = link.stream("/s/Watch", { token: undefined }, LONG_MS);
  await first;
  assert.deepEqual(await failure(call(link, 30)), [4, "no response in time", false]);
});

test("a stream holds the server back while its loop does not take messages", async (t) => {
  const total = 64;
  let sent = 0;
  let isBlocked = false;
  const port = await serve(t, (stream) => {
    stream.respond(HEAD, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    const more = (): void => {
      while (sent < total) {
        sent++;
        isBlocked = !stream.write(framed(new Uint8Array(128 * 1024)));
        if (isBlocked) return;
      }
      stream.end();
    };
    stream.on("drain", more);
    more();
  });
  const link = linkTo(t, port);
  const stream = await link.stream("/s/Watch", { token: undefined }, LONG_MS);
  const responses = stream.responses()[Symbol.asyncIterator]();
  await responses.next();
  let before = -1;
  // Until nothing moves any more: the windows are full.
  while (before !== sent || !isBlocked) {
    before = sent;
    for (let n = 0; n < 50; n++) await turn();
  }
  assert.ok(sent < total / 2, `${sent}`);
  let received = 1;
  for (; !(await responses.next()).done; received++);
  assert.equal(received, total);
});

test("a stream that the server ends with an error, and one that is cancelled", async (t) => {
  const port = await serve(t, (stream) => {
    stream.on("error", () => {});
    stream.once("data", () =>
      stream.respond(
        { ...HEAD, "grpc-status": "14", "grpc-message": "etcdserver: no leader" },
        { endStream: true },
      ),
    );
  });
  const link = linkTo(t, port);
  const open = () => link.stream("/s/Watch", { token: undefined }, LONG_MS);
  const failing = await open();
  failing.send(new Uint8Array(1));
  const all = async (): Promise<void> => {
    for await (const _ of failing.responses());
  };
  assert.deepEqual(await failure(all()), [14, "etcdserver: no leader", true]);
  const cancelled = await open();
  const loop = (async () => {
    for await (const _ of cancelled.responses());
  })();
  cancelled.cancel();
  await loop;
});

test("servers that are none", async (t) => {
  const closed = createServer();
  const free = await listening(t, closed);
  closed.close();
  await once(closed, "close");
  assert.deepEqual(await failure(call(linkTo(t, free))), [14, "connection refused", false]);

  const silent = await listening(t, createServer());
  const dial = linkTo(t, silent).call("/s/Do", new Uint8Array(1), { token: "" }, 20, LONG_MS);
  assert.deepEqual(await failure(dial), [14, "no connection in time", false]);

  const hangsUp = await listening(
    t,
    createServer((socket) => socket.end()),
  );
  assert.deepEqual(await failure(call(linkTo(t, hangsUp))), [
    14,
    "the connection was closed",
    false,
  ]);

  const http1 = await listening(
    t,
    createServer((socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n")),
  );
  assert.deepEqual(await failure(call(linkTo(t, http1))), [
    14,
    "the server there does not speak gRPC",
    false,
  ]);

  const web = await serve(t, (stream) => {
    stream.respond({ ":status": 404 });
    stream.end("no");
  });
  const [code, message] = await failure(call(linkTo(t, web)));
  assert.deepEqual([code, message], [12, "the server there does not speak gRPC (HTTP status 404)"]);
});

test("a closed link ends what is open and refuses what comes", async (t) => {
  const port = await serve(t, (stream) => void stream.on("error", () => {}));
  const link = linkTo(t, port);
  const stream = await link.stream("/s/Watch", { token: undefined }, LONG_MS);
  const pending = failure(call(link));
  await turn();
  link.close();
  assert.deepEqual(await pending, [1, "the client is closed", true]);
  const loop = (async () => {
    for await (const _ of stream.responses());
  })();
  assert.deepEqual(await failure(loop), [1, "the client is closed", true]);
  assert.equal((await failure(call(link)))[0], 1);
});

test("an idle connection does not keep the process alive", async (t) => {
  const port = await serve(t, (stream) => respond(stream, new Uint8Array(0)));
  const program = `
    import { connect } from "@quorate/client";
    const client = connect({ endpoints: ["127.0.0.1:${port}"] });
    await client.get("a");
    console.log("done");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output = child.stdout.toArray();
  const [exitCode] = (await once(child, "exit")) as [number];
  assert.equal(exitCode, 0);
  assert.equal(Buffer.concat(await output).toString(), "done\n");
});
