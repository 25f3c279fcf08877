import assert from "node:assert/strict";
import { linkSync, mkdtempSync, rmSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { HttpRequest, HttpResponse } from "@quorate/host";
import { Agent, Pool, request } from "undici";
import { freePorts } from "../../../test/support/ports.ts";
import { REST_MS } from "../node/engine/http1-socket.ts";
import { unary } from "./helpers/calls.ts";
import { deferred, startServer } from "./helpers/server.ts";

/** A GET or POST by node:http2, without gRPC. */
async function overHttp2(
  port: number,
  headers: Record<string, string>,
  body?: Uint8Array,
): Promise<{ status: number; headers: object; body: string }> {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const stream = session.request({ ":path": "/", ...headers });
  let status = 0;
  let received: object = {};
  const chunks: Buffer[] = [];
  stream.on("response", (answer) => {
    status = answer[":status"] ?? 0;
    received = answer;
  });
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.end(body);
  await new Promise((resolve, reject) => {
    stream.on("error", reject);
    stream.on("close", resolve);
  });
  session.destroy();
  return { status, headers: received, body: Buffer.concat(chunks).toString() };
}

describe("plain HTTP", () => {
  it("reaches the handler alike over HTTP/1.1 and HTTP/2", async (t) => {
    const seen: HttpRequest[] = [];
    const http = (one: HttpRequest): HttpResponse => {
      seen.push(one);
      return {
        status: 201,
        headers: { "content-type": "text/plain", "x-answer": "42" },
        body: `got ${one.body.length}\n`,
      };
    };
    const { port } = await startServer(t, { http });
    const first = await request(
      `http://127.0.0.1:${port}/health?exclude=NOSPACE&serializable=true`,
      {
        method: "POST",
        headers: { "x-test": "a" },
        body: "hello",
      },
    );
    assert.equal(first.statusCode, 201);
    assert.equal(first.headers["x-answer"], "42");
    assert.equal(first.headers["content-length"], "6");
    assert.equal(await first.body.text(), "got 5\n");
    const second = await overHttp2(
      port,
      {
        ":method": "POST",
        ":path": "/health?exclude=NOSPACE&serializable=true",
        "x-test": "a",
        "content-type": "application/grpc-web",
      },
      Buffer.from("hello"),
    );
    assert.equal(second.status, 201);
    assert.equal(second.body, "got 5\n");
    for (const one of seen) {
      assert.equal(one.method, "POST");
      assert.equal(one.path, "/health");
      assert.equal(one.query, "exclude=NOSPACE&serializable=true");
      assert.equal(one.headers.get("x-test"), "a");
      assert.equal(one.headers.get("host"), `127.0.0.1:${port}`);
      assert.equal(Buffer.from(one.body).toString(), "hello");
      assert.match(one.peerAddress, /^127\.0\.0\.1:\d+$/);
      assert.equal(one.peerCommonName, undefined);
    }
    assert.equal(seen.length, 2);
  });

  it("answers HEAD without a body but with its length", async (t) => {
    const { port } = await startServer(t, {
      http: () => ({ status: 200, headers: {}, body: "12345" }),
    });
    const first = await request(`http://127.0.0.1:${port}/`, { method: "HEAD" });
    assert.equal(first.headers["content-length"], "5");
    assert.equal(await first.body.text(), "");
    const second = await overHttp2(port, { ":method": "HEAD" });
    assert.equal((second.headers as Record<string, unknown>)["content-length"], "5");
    assert.equal(second.body, "");
  });

  it("answers without a body where there is none", async (t) => {
    const { port } = await startServer(t, { http: () => ({ status: 204, headers: {}, body: "" }) });
    const first = await request(`http://127.0.0.1:${port}/`);
    assert.equal(first.statusCode, 204);
    assert.equal(first.headers["content-length"], undefined);
    assert.equal((await overHttp2(port, { ":method": "GET" })).status, 204);
  });

  it("keeps the connection for more requests, one after the other and all at once", async (t) => {
    const { port, server } = await startServer(t, {
      http: async (one) => ({ status: 200, headers: {}, body: one.path }),
    });
    const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 1, pipelining: 10 });
    t.after(() => pool.destroy());
    const paths = Array.from({ length: 50 }, (_, i) => `/${i}`);
    const answers = await Promise.all(
      paths.map(async (path) => (await pool.request({ path, method: "GET" })).body.text()),
    );
    assert.deepEqual(answers, paths);
    assert.equal(server.counters().acceptedConnections, 1);
  });

  it("refuses a body that is too long", async (t) => {
    const { port } = await startServer(t, {
      maxHttpBodyBytes: 1000,
      http: (one) => ({ status: 200, headers: {}, body: String(one.body.length) }),
    });
    const agent = new Agent();
    t.after(() => agent.destroy());
    const ask = (bytes: number) =>
      request(`http://127.0.0.1:${port}/`, {
        method: "POST",
        body: Buffer.alloc(bytes),
        dispatcher: agent,
      });
    assert.equal(await (await ask(1000)).body.text(), "1000");
    assert.equal((await ask(1001)).statusCode, 413);
    assert.equal((await overHttp2(port, { ":method": "POST" }, Buffer.alloc(100_000))).status, 413);
    assert.equal((await overHttp2(port, { ":method": "POST" }, Buffer.alloc(1000))).body, "1000");
  });

  it("turns a failing handler into status 500 and a log line", async (t) => {
    const { port, logger } = await startServer(t, {
      http: () => {
        throw new Error("oops");
      },
    });
    assert.equal((await request(`http://127.0.0.1:${port}/x`)).statusCode, 500);
    assert.equal((await overHttp2(port, { ":method": "GET" })).status, 500);
    assert.deepEqual(await logger.line("failed to handle HTTP request"), {
      level: "warn",
      msg: "failed to handle HTTP request",
      fields: { method: "GET", path: "/x", error: "oops" },
    });
  });

  it("survives a client that leaves in the middle", async (t) => {
    const asked = deferred();
    const answer = deferred();
    const { port } = await startServer(t, {
      http: async (one) => {
        if (one.path === "/slow") {
          asked.resolve();
          await answer.promise;
        }
        return { status: 200, headers: {}, body: "fine" };
      },
    });
    const half = connect(port, "127.0.0.1");
    await new Promise((resolve) =>
      half.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf", resolve),
    );
    half.destroy();
    const gone = connect(port, "127.0.0.1");
    gone.write("GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
    await asked.promise;
    gone.destroy();
    answer.resolve();
    assert.equal(await (await request(`http://127.0.0.1:${port}/`)).body.text(), "fine");
  });

  it("shares its port with gRPC, or does not", async (t) => {
    const what = {
      unary: { "/test.Echo/Now": (bytes: Uint8Array) => bytes },
      http: () => ({ status: 200, headers: {}, body: "fine" }),
    };
    const listen = (serves: "grpc" | "http") => ({
      listen: [{ host: "127.0.0.1", port: 0, secure: false, serves }],
    });
    const grpc = await startServer(t, { ...what, options: listen("grpc") });
    const http = await startServer(t, { ...what, options: listen("http") });
    assert.deepEqual(
      await unary(grpc.client(), "/test.Echo/Now", Buffer.from("x")),
      Buffer.from("x"),
    );
    assert.equal((await overHttp2(grpc.port, { ":method": "GET" })).status, 415);
    await assert.rejects(request(`http://127.0.0.1:${grpc.port}/`));
    assert.equal((await request(`http://127.0.0.1:${http.port}/`)).statusCode, 200);
    assert.equal((await overHttp2(http.port, { ":method": "GET" })).status, 200);
    assert.notDeepEqual(
      await unary(http.client(), "/test.Echo/Now", Buffer.from("x")),
      Buffer.from("x"),
    );
  });

  it("is served on a unix socket, also where one of a process that has ended lies", async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "rpc-"));
    t.after(() => rmSync(directory, { recursive: true }));
    const [path, left] = [join(directory, "socket"), join(directory, "left")];
    const listening = (path: string) =>
      startServer(t, {
        options: { listen: [{ path, secure: false }] },
        http: (one) => ({ status: 200, headers: {}, body: one.peerAddress }),
      });
    const first = await listening(path);
    // The file of a process that was killed: closing removes only the name that was listened on.
    linkSync(path, left);
    await first.server.close(0);
    await listening(left);
    const dispatcher = new Agent({ connect: { socketPath: left } });
    t.after(() => dispatcher.destroy());
    const answer = await request("http://localhost/", { dispatcher });
    assert.equal(await answer.body.text(), "@");
    await assert.rejects(listening(left), { code: "EADDRINUSE" });
  });

  it("opens all of its addresses or none", async (t) => {
    const taken = await startServer(t, {});
    const [free] = await freePorts(1);
    const address = (port: number) => ({ host: "127.0.0.1", port, secure: false });
    await assert.rejects(
      startServer(t, { options: { listen: [address(free), address(taken.port)] } }),
      { code: "EADDRINUSE" },
    );
    const again = await startServer(t, { options: { listen: [address(free)] } });
    assert.equal(again.port, free);
  });
});

describe("a request that comes by the byte", () => {
  const LENGTH = 300;
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  it("is read in rests, and served whole", async (t) => {
    const http = async ({ body }: HttpRequest): Promise<HttpResponse> => ({
      status: 200,
      headers: {},
      body: `${body.length} bytes`,
    });
    const server = await startServer(t, { http });
    const socket = await server.socket();
    let response = "";
    socket.on("data", (chunk: Buffer) => {
      response += chunk;
    });
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${LENGTH}\r\n\r\n`);
    for (let i = 0; i < LENGTH; i++) {
      await turn();
      socket.write("b");
    }
    for (let i = 0; i < 50; i++) await turn();
    // The clock stands still, and so the connection rests.
    assert.equal(response, "");
    for (let i = 0; i < 100 && response === ""; i++) {
      server.clock.advance(REST_MS);
      for (let k = 0; k < 20; k++) await turn();
    }
    assert.match(response, /300 bytes$/);
    // What is whole is read at once, however short.
    response = "";
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    for (let i = 0; i < 1000 && response === ""; i++) await turn();
    assert.match(response, /0 bytes$/);
  });
});
