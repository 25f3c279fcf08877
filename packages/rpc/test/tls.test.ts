import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect as connectPlain, createServer } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { connect as connectTls } from "node:tls";
import { credentials, status } from "@grpc/grpc-js";
import { Pauses } from "@quorate/host";
import { nodeClock, readRevocations, type TlsOptions, type TlsSource } from "@quorate/host/node";
import { Agent, request } from "undici";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  makeRevocationList,
  type TestCertificate,
} from "../../../test/support/certs.ts";
import { type Failure, unary } from "./helpers/calls.ts";
import { type RunningServer, startServer } from "./helpers/server.ts";

const CA = makeAuthority();
const SERVER = makeLocalCertificate(CA, "server");
const CLIENT = makeLocalCertificate(CA, "client-one");
const OTHER_CA = makeAuthority("other-ca");
const UNKNOWN = makeLocalCertificate(OTHER_CA, "client-one");
const EXPIRED = makeCertificate({ name: "client-one", issuer: CA, validDays: -1 });

const MUTUAL: TlsOptions = {
  certPem: SERVER.certPem,
  keyPem: SERVER.keyPem,
  trustedCaPem: CA.certPem,
  clientCertAuth: true,
};

/** Node does not take an address for a server name in TLS, and this client always sends one. */
const BY_NAME = { "grpc.ssl_target_name_override": "localhost" };

function start(t: TestContext, tls: TlsOptions | TlsSource): Promise<RunningServer> {
  return startServer(t, {
    tls,
    unary: { "/test.Echo/Who": (_bytes, context) => Buffer.from(String(context.peerCommonName)) },
    http: (one) => ({ status: 200, headers: {}, body: String(one.peerCommonName) }),
  });
}

/** Who the server takes the bearer of a certificate for, or how the call failed. */
async function who(
  server: RunningServer,
  certificate: TestCertificate | undefined,
): Promise<string | Failure> {
  const secure = credentials.createSsl(
    Buffer.from(CA.certPem),
    certificate ? Buffer.from(certificate.keyPem) : null,
    certificate ? Buffer.from(certificate.certPem) : null,
  );
  const answer = await unary(server.client(BY_NAME, secure), "/test.Echo/Who", Buffer.alloc(0), {
    call: { deadline: Date.now() + 60_000 },
  });
  return Buffer.isBuffer(answer) ? answer.toString() : answer;
}

async function refused(
  server: RunningServer,
  certificate: TestCertificate | undefined,
  reason: string | RegExp,
): Promise<void> {
  const answer = await who(server, certificate);
  assert.equal(typeof answer === "string" ? answer : answer.code, status.UNAVAILABLE);
  const line = await server.logger.line("rejected connection on client endpoint");
  assert.equal(line.level, "warn");
  assert.match(String(line.fields["remote-addr"]), /^127\.0\.0\.1:\d+$/);
  if (typeof reason === "string") assert.equal(line.fields["error"], reason);
  else assert.match(String(line.fields["error"]), reason);
  assert.ok(server.server.counters().failedHandshakes > 0);
}

/** The first bytes that a client sends. */
async function firstFlight(): Promise<Buffer> {
  const seen = Promise.withResolvers<Buffer>();
  const ear = createServer((socket) => socket.on("error", () => {}).once("data", seen.resolve));
  await once(ear.listen(0, "127.0.0.1"), "listening");
  const { port: earPort } = ear.address() as AddressInfo;
  const client = connectTls({ port: earPort, host: "127.0.0.1", ca: CA.certPem });
  client.on("error", () => {});
  try {
    return await seen.promise;
  } finally {
    client.destroy();
    ear.close();
  }
}

describe("mutual TLS", () => {
  it("accepts a certificate of its authority, and passes its name to the service", async (t) => {
    assert.equal(await who(await start(t, MUTUAL), CLIENT), "client-one");
  });

  it("takes clients without a certificate where it is optional, and reports a bad one", async (t) => {
    const tls = { ...MUTUAL, clientCertAuth: false, clientCertOptional: true };
    const { port } = await startServer(t, {
      tls,
      http: (one) => ({
        status: 200,
        headers: {},
        body: [one.peerCommonName, one.peerOrganizations?.join(), one.peerCertificateError].join(),
      }),
    });
    const from = async (certificate: TestCertificate | undefined): Promise<string> => {
      const { certPem: cert, keyPem: key } = certificate ?? {};
      const dispatcher = new Agent({ connect: { ca: CA.certPem, cert, key } });
      try {
        const { body } = await request(`https://localhost:${port}/`, { dispatcher });
        return await body.text();
      } finally {
        await dispatcher.close();
      }
    };
    assert.equal(await from(undefined), ",,");
    assert.equal(await from(CLIENT), "client-one,,");
    assert.match(await from(UNKNOWN), /^,,.*UNABLE_TO/);
  });

  it("lets it in over HTTP/1.1 too", async (t) => {
    const { port } = await start(t, MUTUAL);
    const dispatcher = new Agent({
      connect: { ca: CA.certPem, cert: CLIENT.certPem, key: CLIENT.keyPem },
      allowH2: false,
    });
    t.after(() => dispatcher.destroy());
    const answer = await request(`https://127.0.0.1:${port}/`, { dispatcher });
    assert.equal(await answer.body.text(), "client-one");
    const overHttp2 = new Agent({
      connect: { ca: CA.certPem, cert: CLIENT.certPem, key: CLIENT.keyPem },
      allowH2: true,
    });
    t.after(() => overHttp2.destroy());
    assert.equal(
      await (await request(`https://127.0.0.1:${port}/`, { dispatcher: overHttp2 })).body.text(),
      "client-one",
    );
  });

  it("refuses and logs one of another authority", async (t) => {
    await refused(
      await start(t, MUTUAL),
      UNKNOWN,
      "tls: failed to verify certificate: x509: certificate signed by unknown authority",
    );
  });

  it("refuses and logs a client without one", async (t) => {
    await refused(await start(t, MUTUAL), undefined, "tls: client didn't provide a certificate");
  });

  it("refuses and logs one that has expired", async (t) => {
    await refused(await start(t, MUTUAL), EXPIRED, /certificate has expired/);
  });

  it("is demanded by a trusted authority alone, as in etcd", async (t) => {
    await refused(
      await start(t, { ...MUTUAL, clientCertAuth: false }),
      undefined,
      "tls: client didn't provide a certificate",
    );
  });

  it("can be bound to common names", async (t) => {
    assert.equal(
      await who(
        await start(t, { ...MUTUAL, allowedCommonNames: ["someone", "client-one"] }),
        CLIENT,
      ),
      "client-one",
    );
    await refused(
      await start(t, { ...MUTUAL, allowedCommonNames: ["someone"] }),
      CLIENT,
      "client certificate authentication failed",
    );
  });

  it("can be bound to host names and addresses", async (t) => {
    assert.equal(
      await who(await start(t, { ...MUTUAL, allowedHostnames: ["localhost"] }), CLIENT),
      "client-one",
    );
    assert.equal(
      await who(await start(t, { ...MUTUAL, allowedHostnames: ["10.0.0.1", "127.0.0.1"] }), CLIENT),
      "client-one",
    );
    const server = await start(t, { ...MUTUAL, allowedHostnames: ["client-one"] });
    await refused(server, CLIENT, "client certificate authentication failed");
    const line = await server.logger.line("rejected connection on client endpoint");
    assert.deepEqual(line.fields["dns-names"], ["localhost"]);
  });

  it("refuses revoked serial numbers", async (t) => {
    const second = makeLocalCertificate(CA, "client-two");
    const server = await start(t, {
      ...MUTUAL,
      revokedSerials: (
        await readRevocations(makeRevocationList(CA, [CLIENT]), new Pauses(nodeClock.turns))
      ).serials,
    });
    assert.equal(await who(server, second), "client-two");
    await refused(
      server,
      CLIENT,
      `transport: certificate serial ${CLIENT.serial.toString(16)} revoked`,
    );
  });

  it("passes the whole subject of a certificate", async (t) => {
    const server = await startServer(t, {
      tls: MUTUAL,
      unary: { "/test.Echo/Who": (_bytes, context) => Buffer.from(String(context.peerSubject)) },
    });
    assert.equal(await who(server, CLIENT), "CN=client-one");
  });

  it("passes no name if no certificate was requested", async (t) => {
    const server = await start(t, { certPem: SERVER.certPem, keyPem: SERVER.keyPem });
    assert.equal(await who(server, undefined), "undefined");
    assert.equal(await who(server, CLIENT), "undefined");
  });
});

describe("a TLS port", () => {
  it("keeps to the versions and ciphers that it was given", async (t) => {
    const { port, logger } = await start(t, {
      certPem: SERVER.certPem,
      keyPem: SERVER.keyPem,
      minVersion: "TLSv1.3",
    });
    const old = connectTls({ port, host: "127.0.0.1", ca: CA.certPem, maxVersion: "TLSv1.2" });
    await new Promise((resolve) => old.on("error", resolve));
    assert.equal(
      (await logger.line("rejected connection on client endpoint")).fields["error"],
      "tls: client offered only unsupported versions",
    );
    const strict = await start(t, {
      certPem: SERVER.certPem,
      keyPem: SERVER.keyPem,
      maxVersion: "TLSv1.2",
      ciphers: "ECDHE-ECDSA-AES256-GCM-SHA384",
    });
    const socket = connectTls({ port: strict.port, host: "127.0.0.1", ca: CA.certPem });
    await new Promise((resolve) => socket.on("secureConnect", resolve));
    assert.deepEqual(
      [socket.getProtocol(), socket.getCipher().name],
      ["TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"],
    );
    socket.destroy();
  });

  it("takes no weak cipher, and no version before TLS 1.2", async (t) => {
    const { port } = await start(t, { certPem: SERVER.certPem, keyPem: SERVER.keyPem });
    // RC4, triple DES, export ciphers and none at all.
    const weak = [0x0002, 0x0003, 0x0004, 0x0005, 0x000a, 0xc006, 0xc007, 0xc008, 0xc012];
    const good = [0xc02b];
    const [handshakeFailure, protocolVersion] = [40, 70];
    assert.equal(await alertOf(port, 0x0303, good), undefined);
    assert.equal(await alertOf(port, 0x0303, weak), handshakeFailure);
    assert.equal(await alertOf(port, 0x0302, good), protocolVersion);
    assert.equal(await alertOf(port, 0x0301, good), protocolVersion);
  });

  it("logs what is not TLS, and says nothing of a connection that just leaves", async (t) => {
    const { port, logger } = await start(t, MUTUAL);
    const leaving = connectPlain(port, "127.0.0.1");
    await new Promise((resolve) => leaving.on("connect", resolve));
    leaving.end();
    await new Promise((resolve) => leaving.on("close", resolve));
    assert.deepEqual(
      logger.lines.map((line) => `${line.level} ${line.fields["error"]}`),
      ["debug EOF"],
    );
    logger.lines.length = 0;
    const plain = connectPlain(port, "127.0.0.1");
    plain.on("error", () => {});
    plain.write("GET / HTTP/1.1\r\n\r\n");
    const line = await logger.line("rejected connection on client endpoint");
    assert.deepEqual(
      [line.level, line.fields["error"]],
      ["warn", "tls: first record does not look like a TLS handshake"],
    );
  });

  it("lets clients in beside a crowd that begins its handshakes and says no more", async (t) => {
    const server = await start(t, MUTUAL);
    const { port } = server;
    const hello = await firstFlight();
    const crowd = Array.from({ length: 300 }, () => connectPlain(port, "127.0.0.1"));
    for (const socket of crowd) socket.on("error", () => {}).write(hello);
    t.after(() => {
      for (const socket of crowd) socket.destroy();
    });
    // Each has the server's side of the handshake, and so waits for its client.
    await Promise.all(crowd.map((socket) => once(socket, "data")));
    const names = await Promise.all(Array.from({ length: 20 }, () => who(server, CLIENT)));
    assert.deepEqual(names, Array(20).fill("client-one"));
  });

  it("needs TLS options", async (t) => {
    const options = { listen: [{ host: "127.0.0.1", port: 0, secure: true }] };
    await assert.rejects(startServer(t, { options }), {
      message: "a secure listen address needs TLS options",
    });
  });
});

describe("TLS options that change", () => {
  it("hold for new connections, while open ones go on", async (t) => {
    const listeners = new Set<() => void>();
    let current: TlsOptions = MUTUAL;
    const server = await start(t, {
      get current() {
        return current;
      },
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    });
    const change = (options: TlsOptions) => {
      current = options;
      for (const listener of listeners) listener();
    };
    const asClient = credentials.createSsl(
      Buffer.from(CA.certPem),
      Buffer.from(CLIENT.keyPem),
      Buffer.from(CLIENT.certPem),
    );
    const open = server.client(BY_NAME, asClient);
    const ask = () =>
      unary(open, "/test.Echo/Who", Buffer.alloc(0), { call: { deadline: Date.now() + 60_000 } });
    assert.equal(String(await ask()), "client-one");

    // Another authority beside the first, and another certificate.
    const fresh = makeLocalCertificate(CA, "fresh server");
    change({
      ...MUTUAL,
      certPem: fresh.certPem,
      keyPem: fresh.keyPem,
      trustedCaPem: CA.certPem + OTHER_CA.certPem,
    });
    assert.equal(await who(server, CLIENT), "client-one");
    assert.equal(await who(server, UNKNOWN), "client-one");
    const socket = connectTls({
      port: server.port,
      host: "127.0.0.1",
      ca: CA.certPem,
      cert: CLIENT.certPem,
      key: CLIENT.keyPem,
      servername: "",
    });
    t.after(() => socket.destroy());
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    assert.equal(socket.getPeerCertificate().subject.CN, "fresh server");

    // The first one is withdrawn.
    change({ ...MUTUAL, trustedCaPem: OTHER_CA.certPem });
    await refused(server, CLIENT, /unknown authority/);
    assert.equal(await who(server, UNKNOWN), "client-one");
    assert.equal(String(await ask()), "client-one");

    // A list of revocations alone.
    change({
      ...MUTUAL,
      trustedCaPem: OTHER_CA.certPem,
      revokedSerials: new Set([UNKNOWN.serial.toString(16).toUpperCase()]),
    });
    const answer = await who(server, UNKNOWN);
    assert.equal(typeof answer === "string" ? answer : answer.code, status.UNAVAILABLE);
    await server.server.close(0);
    assert.equal(listeners.size, 0);
  });
});

/** Greets as a client with a version and ciphers. @returns the alert; undefined: it is greeted */
function alertOf(port: number, version: number, ciphers: readonly number[]) {
  const u16 = (value: number): number[] => [value >> 8, value & 0xff];
  const sized = (bytes: readonly number[]): number[] => [...u16(bytes.length), ...bytes];
  // Curve P-256, and signatures by ECDSA with SHA-256 and SHA-1.
  const extensions = sized([
    ...u16(10),
    ...sized(sized(u16(23))),
    ...u16(13),
    ...sized(sized([0x04, 0x03, 0x02, 0x03])),
  ]);
  const random = Array<number>(32).fill(7);
  const suites = sized(ciphers.flatMap(u16));
  const hello = [...u16(version), ...random, 0, ...suites, 1, 0, ...extensions];
  const handshake = [1, 0, ...sized(hello)];
  return new Promise<number | undefined>((resolve, reject) => {
    const socket = connectPlain(port, "127.0.0.1");
    socket.once("error", reject);
    socket.once("data", (bytes: Buffer) => {
      resolve(bytes[0] === 21 ? bytes[6] : undefined);
      socket.destroy();
    });
    socket.write(Buffer.from([22, 3, 1, ...sized(handshake)]));
  });
}
