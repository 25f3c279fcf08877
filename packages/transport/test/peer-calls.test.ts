/**
 * Single requests to a peer: whole answers, errors that say what was wrong, bounds on time, bytes
 * and connections, the checks of TLS.
 */
import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { describe, it, type TestContext } from "node:test";
import type { TlsOptions } from "@quorate/host/node";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  type TestCertificate,
} from "../../../test/support/certs.ts";
import { PeerCalls } from "../node/peer-calls.ts";

const CA = makeAuthority();
const PEER = makeLocalCertificate(CA, "peer");
const TIMEOUT_MS = 30_000;
const MIB = 1024 * 1024;

function tls(certificate: TestCertificate, more: Partial<TlsOptions> = {}): TlsOptions {
  return {
    certPem: certificate.certPem,
    keyPem: certificate.keyPem,
    trustedCaPem: CA.certPem,
    clientCertAuth: true,
    ...more,
  };
}

/** A peer that answers as it is reported, and what calls it. */
async function peer(
  t: TestContext,
  answer: RequestListener,
  options: { tls?: TlsOptions; theirs?: TestCertificate } = {},
) {
  const { theirs } = options;
  const server: Server =
    theirs === undefined
      ? createServer(answer)
      : createTlsServer(
          {
            cert: theirs.certPem,
            key: theirs.keyPem,
            ca: CA.certPem,
            requestCert: true,
            rejectUnauthorized: true,
          },
          answer,
        );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const calls = new PeerCalls(options.tls);
  t.after(() => {
    calls.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { server, calls, url: `${theirs === undefined ? "http" : "https"}://127.0.0.1:${port}` };
}

describe("a request to a peer", () => {
  it("posts a body or gets, and has the whole answer with its status and cluster, over kept connections", async (t) => {
    const seen: string[] = [];
    const { server, calls, url } = await peer(t, (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        seen.push(
          `${request.method} ${request.url} ${request.headers["content-type"] ?? "-"} ${request.headers["content-length"] ?? "-"}`,
        );
        response.writeHead(
          chunks.length > 0 ? 200 : 412,
          chunks.length > 0 ? { "x-etcd-cluster-id": "cafe" } : {},
        );
        for (const chunk of chunks) response.write(chunk);
        response.end("end");
      });
    });
    let connections = 0;
    server.on("connection", () => connections++);
    const large = new Uint8Array(3 * MIB).fill(7);
    const posted = await calls.call(url, "/leases", large, TIMEOUT_MS);
    assert.deepEqual(
      [posted.status, posted.clusterId, posted.body.length],
      [200, "cafe", large.length + 3],
    );
    assert.equal(Buffer.from(posted.body.subarray(0, large.length)).equals(large), true);
    const got = await calls.call(url, "/members", undefined, TIMEOUT_MS);
    assert.deepEqual(
      [got.status, got.clusterId, Buffer.from(got.body).toString()],
      [412, undefined, "end"],
    );
    assert.deepEqual(seen, [
      `POST /leases application/protobuf ${large.length}`,
      "GET /members - -",
    ]);
    assert.equal(connections, 1);
  });

  it("comes from the local address that was chosen", async (t) => {
    const { server, url } = await peer(t, (request, response) =>
      response.end(request.socket.remoteAddress),
    );
    const calls = new PeerCalls(undefined, "127.0.0.9");
    t.after(() => calls.close());
    const { body } = await calls.call(url, "/version", undefined, TIMEOUT_MS);
    assert.equal(Buffer.from(body).toString(), "127.0.0.9");
    assert.equal(server.listening, true);
  });

  it("takes times that are not whole milliseconds, as what is left of a deadline is", async (t) => {
    const { calls, url } = await peer(t, (_request, response) => void response.end("here"));
    const { status, body } = await calls.call(url, "/version", undefined, TIMEOUT_MS + 0.123);
    assert.deepEqual([status, Buffer.from(body).toString()], [200, "here"]);
  });

  it("is refused for what is no peer URL, or has no TLS options, and fails where no process listens", async (t) => {
    const { server, calls, url } = await peer(t, () => {});
    await assert.rejects(calls.call("ftp://x", "/", undefined, TIMEOUT_MS), {
      message: "not a peer URL: ftp://x",
    });
    await assert.rejects(calls.call("https://127.0.0.1:1", "/", undefined, TIMEOUT_MS), {
      message: "call https://127.0.0.1:1: no TLS options",
    });
    await new Promise((resolve) => server.close(resolve));
    await assert.rejects(calls.call(url, "/", undefined, TIMEOUT_MS), { code: "ECONNREFUSED" });
  });

  it("is given up after its time, when it breaks off, and when all calls are closed", async (t) => {
    const answering: string[] = [];
    const { calls, url } = await peer(t, (request, response) => {
      if (request.url === "/silent") return;
      response.writeHead(200, { "content-length": 100 });
      response.write("half");
      answering.push(request.url!);
      if (request.url === "/broken") setImmediate(() => request.socket.destroy());
    });
    await assert.rejects(calls.call(url, "/silent", undefined, 50), { name: "AbortError" });
    await assert.rejects(calls.call(url, "/half", undefined, 300), { name: "AbortError" });
    await assert.rejects(calls.call(url, "/broken", undefined, TIMEOUT_MS), { message: "aborted" });
    const open = calls.call(url, "/open", undefined, TIMEOUT_MS);
    while (!answering.includes("/open")) await new Promise((resolve) => setImmediate(resolve));
    calls.close();
    await assert.rejects(open);
  });

  it("is given up when the answer is too long", async (t) => {
    const chunk = Buffer.alloc(MIB);
    let sentBytes = 0;
    const { calls, url } = await peer(t, (_request, response) => {
      const more = () => {
        while (!response.destroyed && sentBytes < 400 * MIB) {
          sentBytes += chunk.length;
          if (!response.write(chunk)) {
            response.once("drain", more);
            return;
          }
        }
      };
      more();
    });
    await assert.rejects(calls.call(url, "/", undefined, TIMEOUT_MS), {
      message: `call ${url}: the answer is too long`,
    });
    assert.ok(sentBytes < 200 * MIB, `${sentBytes / MIB} MiB were sent`);
  });

  it("waits while as many as there may be are under way to the peer", async (t) => {
    const waiting: (() => void)[] = [];
    const { server, calls, url } = await peer(
      t,
      (_request, response) => void waiting.push(() => response.end("x")),
    );
    let connections = 0;
    server.on("connection", () => connections++);
    const answers = Promise.all(
      Array.from({ length: 30 }, () => calls.call(url, "/", undefined, TIMEOUT_MS)),
    );
    while (waiting.length < 8) await new Promise((resolve) => setImmediate(resolve));
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(waiting.length, 8, "requests under way");
    for (let done = 0; done < 30; ) {
      const one = waiting.shift();
      if (one === undefined) await new Promise((resolve) => setImmediate(resolve));
      else {
        one();
        done++;
      }
    }
    assert.equal((await answers).length, 30);
    assert.equal(connections, 8);
  });
});

describe("a request to a peer over TLS", () => {
  const answer: RequestListener = (_request, response) => void response.end("fine");

  it("works between certificates of the authority", async (t) => {
    const { calls, url } = await peer(t, answer, { tls: tls(PEER), theirs: PEER });
    assert.equal(
      Buffer.from((await calls.call(url, "/", undefined, TIMEOUT_MS)).body).toString(),
      "fine",
    );
  });

  it("is refused by either side for a certificate of another authority, or none", async (t) => {
    const outsider = makeLocalCertificate(makeAuthority("other-ca"), "peer");
    const first = await peer(t, answer, { tls: tls(PEER), theirs: outsider });
    await assert.rejects(first.calls.call(first.url, "/", undefined, TIMEOUT_MS), /certificate/);
    const second = await peer(t, answer, { tls: tls(outsider), theirs: PEER });
    await assert.rejects(
      second.calls.call(second.url, "/", undefined, TIMEOUT_MS),
      /ECONNRESET|socket|certificate|alert/i,
    );
  });

  it("is refused for a certificate of another host, or of a name that is not allowed", async (t) => {
    const elsewhere = makeCertificate({ name: "peer", issuer: CA, dnsNames: ["peer.example"] });
    const first = await peer(t, answer, { tls: tls(PEER), theirs: elsewhere });
    await assert.rejects(
      first.calls.call(first.url, "/", undefined, TIMEOUT_MS),
      /does not match|altnames|IP/i,
    );
    const bound = tls(PEER, { allowedCommonNames: ["peer"] });
    const second = await peer(t, answer, { tls: bound, theirs: makeLocalCertificate(CA, "guest") });
    await assert.rejects(
      second.calls.call(second.url, "/", undefined, TIMEOUT_MS),
      /client certificate authentication failed/,
    );
  });
});
