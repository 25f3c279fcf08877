/**
 * Crowds of connections that say nothing, or one byte at a time, or only hold their place: others
 * are served all the same. Real sockets on several loopback addresses, time by hand.
 */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import type { TlsOptions } from "@quorate/host/node";
import { ManualClock } from "@quorate/host/testing";
import { concat, fromLatin1 } from "@quorate/proto";
import { EngineServer, type EngineServerOptions, type ListenAddress } from "@quorate/rpc/node";
import {
  makeAuthority,
  makeLocalCertificate,
  type TestCertificate,
} from "../../../test/support/certs.ts";
import { PREFACE } from "../src/http2/constants.ts";
import { settingsFrame } from "./engine/core.ts";
import { RecordingLogger } from "./helpers/server.ts";
import { until } from "./helpers/until.ts";

const GREETING = concat([fromLatin1(PREFACE), settingsFrame()]);
const GET = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
const CA = makeAuthority();
const SERVER = makeLocalCertificate(CA, "server");
const CLIENT = makeLocalCertificate(CA, "client-one");
const MUTUAL: TlsOptions = {
  certPem: SERVER.certPem,
  keyPem: SERVER.keyPem,
  trustedCaPem: CA.certPem,
  clientCertAuth: true,
};

interface Bed {
  readonly server: EngineServer;
  readonly clock: ManualClock;
  readonly logger: RecordingLogger;
  readonly ports: readonly number[];
  /** Requests to /wait that came: they are never answered. */
  readonly waiting: number;
  /** A connection from a loopback address. */
  dial(from?: string, port?: number): Promise<Socket>;
}

async function start(
  t: TestContext,
  options: Partial<EngineServerOptions> = {},
  listen: readonly ListenAddress[] = [PLAIN],
): Promise<Bed> {
  const state = { waiting: 0 };
  const clock = new ManualClock();
  const logger = new RecordingLogger();
  const server = new EngineServer(
    { listen, ...options },
    {
      services: { unary: new Map(), stream: new Map() },
      http: (exchange) => {
        const { path } = exchange.head;
        if (path === "/wait") state.waiting++;
        else if (path === "/events") {
          exchange.start(200, { "content-type": "text/event-stream" });
          exchange.send(fromLatin1(": here\n\n"));
        } else {
          const body = path === "/large" ? "x".repeat(4_000_000) : "served";
          exchange.respond({ status: 200, headers: {}, body });
        }
        return {};
      },
      clock,
      logger,
    },
  );
  const ports = (await server.listen()).map(({ port }) => port ?? 0);
  t.after(async () => {
    const closed = server.close(0);
    clock.advance(1);
    await closed;
  });
  const dial = (from = "127.0.0.1", port = ports[0]): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", localAddress: from, noDelay: true }, () =>
        resolve(socket),
      );
      socket.once("error", reject);
      socket.on("connect", () => socket.off("error", reject).on("error", () => {}));
      t.after(() => socket.destroy());
    });
  return Object.assign(state, { server, clock, logger, ports, dial });
}

const PLAIN: ListenAddress = { host: "127.0.0.1", port: 0, secure: false };
const BOTH: ListenAddress = { ...PLAIN, secure: true, alsoPlain: true };

/** The bytes that a connection receives until it closes, or until `enough`. */
function heard(socket: Socket, enough?: RegExp): Promise<string> {
  let text = "";
  return new Promise((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (enough?.test(text)) resolve(text);
    });
    socket.on("close", () => resolve(text));
  });
}

async function isServed(bed: Bed, from: string, port?: number): Promise<void> {
  const socket = await bed.dial(from, port);
  socket.write(GET);
  assert.match(await heard(socket, /served$/), /served$/);
  socket.destroy();
}

/** A client with a certificate, from an address, that asks once. */
function askSecurely(
  bed: Bed,
  from: string,
  certificate: TestCertificate,
  port = bed.ports[0],
): Promise<string> {
  const socket = connectTls({
    socket: connect({ port, host: "127.0.0.1", localAddress: from }),
    ca: CA.certPem,
    cert: certificate.certPem,
    key: certificate.keyPem,
    servername: "localhost",
    ALPNProtocols: ["http/1.1"],
  });
  socket.on("error", () => {});
  socket.once("secureConnect", () => socket.write(GET));
  return heard(socket, /served$/).finally(() => socket.destroy());
}

describe("handshakes and headers that never end", () => {
  /** What a slow client sends, a byte at a time. */
  const slow: Readonly<Record<string, { readonly secure: boolean; readonly bytes: Uint8Array }>> = {
    "a TLS record": {
      secure: true,
      bytes: concat([
        Uint8Array.of(0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc, 3, 3),
        new Uint8Array(1000),
      ]),
    },
    "HTTP/1 headers": {
      secure: false,
      bytes: fromLatin1(`GET / HTTP/1.1\r\n${"x-y: z\r\n".repeat(100)}`),
    },
    "HTTP/2's preface": { secure: false, bytes: fromLatin1(PREFACE) },
    "HTTP/2's first SETTINGS": {
      secure: false,
      bytes: concat([
        fromLatin1(PREFACE),
        Uint8Array.of(0, 0x3f, 0xff, 4, 0, 0, 0, 0, 0),
        new Uint8Array(1000),
      ]),
    },
  };
  for (const [name, { secure, bytes }] of Object.entries(slow)) {
    test(`${name}, one byte every three seconds: the socket is closed at its deadline`, async (t) => {
      const bed = await start(t, secure ? { tls: MUTUAL } : {}, [{ ...PLAIN, secure }]);
      const socket = await bed.dial();
      let closedAtMs = 0;
      socket.on("close", () => {
        closedAtMs = bed.clock.monotonicMs();
      });
      socket.resume();
      // A first part at once, to get as far as possible.
      let sent = Math.min(bytes.length - 8, 33);
      socket.write(bytes.subarray(0, sent));
      await until(() => bed.server.counters().activeConnections === 1);
      const startMs = bed.clock.monotonicMs();
      for (let at = 0; at < 8 && !socket.destroyed; at++) {
        socket.write(bytes.subarray(sent, ++sent));
        await new Promise((resolve) => setTimeout(resolve, 5));
        for (let ms = 0; ms < 3; ms++) bed.clock.advance(1000);
      }
      // A second for each of: the stage before this one, a look at the clock, the time to say
      // good-bye.
      await until(() => socket.destroyed);
      assert.ok(closedAtMs - startMs <= 24_000, `${closedAtMs - startMs} ms`);
      await until(() => bed.server.counters().activeConnections === 0);
    });
  }

  test("half-open TLS handshakes fill their share and no more; a client with a certificate comes in", async (t) => {
    const bed = await start(t, { tls: MUTUAL, maxConnections: 32 }, [{ ...PLAIN, secure: true }]);
    for (let i = 0; i < 40; i++) (await bed.dial("127.0.0.66")).write(Uint8Array.of(0x16));
    await until(() => bed.server.counters().acceptedConnections === 40);
    assert.equal(bed.server.counters().displacedHandshakes, 32);
    // From an address of its own, and from the attackers'.
    assert.match(await askSecurely(bed, "127.0.0.2", CLIENT), /served$/);
    assert.match(await askSecurely(bed, "127.0.0.66", CLIENT), /served$/);
    for (let second = 0; second < 11; second++) bed.clock.advance(1000);
    await until(() => bed.server.counters().activeConnections === 0);
    assert.equal(bed.server.counters().handshakeTimeouts, 7);
  });
});

describe("an address for plain connections and TLS", () => {
  test("serves both, whatever part of a handshake or request comes first", async (t) => {
    const bed = await start(t, { tls: MUTUAL }, [BOTH]);
    await isServed(bed, "127.0.0.1");
    assert.match(await askSecurely(bed, "127.0.0.1", CLIENT), /served$/);
    const socket = await bed.dial();
    const answer = heard(socket, /served$/);
    for (const byte of GET) {
      socket.write(byte);
      await new Promise(setImmediate);
    }
    assert.match(await answer, /served$/);
    // HTTP/2 without TLS: the server's SETTINGS come first.
    const second = await bed.dial();
    second.write(GREETING);
    const frames = await heard(second, /^.{9}/s);
    assert.equal(frames.charCodeAt(3), 4);
    second.destroy();
  });

  test("takes no certificate but one that its CA has signed", async (t) => {
    const bed = await start(t, { tls: MUTUAL }, [BOTH]);
    const unknown = makeLocalCertificate(makeAuthority(), "client-one");
    assert.equal(await askSecurely(bed, "127.0.0.1", unknown), "");
    await until(() => bed.server.counters().failedHandshakes === 1);
  });

  for (const first of ["", "\x16", "\x16\x03\x01", "G"])
    test(`closes a connection that sends ${JSON.stringify(first)} and nothing more`, async (t) => {
      const bed = await start(t, { tls: MUTUAL }, [BOTH]);
      const socket = await bed.dial();
      socket.resume();
      if (first !== "") socket.write(first, "latin1");
      await until(() => bed.server.counters().activeConnections === 1);
      for (let second = 0; second < 24; second++) {
        await new Promise(setImmediate);
        bed.clock.advance(1000);
      }
      await until(() => socket.destroyed);
      await until(() => bed.server.counters().activeConnections === 0);
    });
});

describe("connections that only hold their place", () => {
  test("on the port for metrics take none of the client port's", async (t) => {
    const bed = await start(t, { tls: MUTUAL }, [
      { ...PLAIN, secure: true, maxConnections: 8 },
      { ...PLAIN, serves: "http", maxConnections: 8 },
    ]);
    for (let i = 0; i < 30; i++) (await bed.dial("127.0.0.66", bed.ports[1])).write(GET);
    await until(() => bed.server.counters().acceptedConnections === 30);
    assert.match(await askSecurely(bed, "127.0.0.66", CLIENT), /served$/);
    await isServed(bed, "127.0.0.2", bed.ports[1]);
    assert.ok(bed.server.counters().activeConnections <= 8 + 2);
  });

  for (const what of ["HTTP/1", "HTTP/2"]) {
    test(`of one address, with ${what}, yield to other addresses, and for newer ones of their own`, async (t) => {
      const bed = await start(t, { maxConnections: 8 });
      for (let i = 0; i < 20; i++) {
        const socket = await bed.dial("127.0.0.66");
        socket.resume();
        socket.write(what === "HTTP/1" ? GET : GREETING);
        await until(() => bed.server.counters().acceptedConnections === i + 1);
      }
      for (const from of ["127.0.0.2", "127.0.0.3", "127.0.0.66"]) await isServed(bed, from);
      assert.equal(bed.server.counters().refusedConnections, 0);
      assert.ok(bed.server.counters().displacedConnections >= 12);
    });
  }

  test("of one address, with an event stream each, leave slots to other addresses", async (t) => {
    const bed = await start(t, { maxConnections: 8 });
    const streams: Socket[] = [];
    const begun: string[] = [];
    for (let i = 0; i < 12; i++) {
      const socket = await bed.dial("127.0.0.66");
      streams.push(socket);
      const text = heard(socket, /: here/);
      socket.write(GET.replace(" / ", " /events "));
      begun.push(await text);
    }
    const held = begun.filter((text) => text.includes(": here")).length;
    assert.equal(held, 6, "a quarter of the slots is for handshakes and other addresses");
    for (const from of ["127.0.0.2", "127.0.0.3", "127.0.0.4"]) await isServed(bed, from);
    const open = streams.filter((socket) => !socket.readableEnded && !socket.destroyed);
    assert.equal(streams[0].destroyed, false, "the oldest stream goes on");
    assert.ok(open.length >= held - 3, "each of the others needed one slot at the most");
  });

  test("without a call end after a time when most are taken, the longest idle first, with GOAWAY", async (t) => {
    const bed = await start(t, { maxConnections: 16 });
    const sockets: Socket[] = [];
    for (let i = 0; i < 12; i++) {
      const socket = await bed.dial();
      sockets.push(socket);
      socket.write(GREETING);
      await until(() => bed.server.counters().http2.openConnections === i + 1);
      bed.clock.advance(100);
    }
    const first = heard(sockets[0]);
    for (let second = 0; second < 70; second++) {
      bed.clock.advance(1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    // GOAWAY twice: the first one says that it is going to close, the second one that it does.
    const text = await first;
    assert.equal(text.split("\0\0\u0008\u0007\0\0\0\0\0").length - 1, 2);
    assert.equal(bed.server.counters().drainedIdleConnections, 3);
    await until(() => bed.server.counters().activeConnections === 9);
    assert.deepEqual(
      sockets.map((socket) => socket.readableEnded || socket.destroyed).slice(3),
      new Array(9).fill(false),
    );
  });

  test("that ask for large answers over HTTP/1 and read nothing: the largest holders go, others are served", async (t) => {
    const bed = await start(t, {
      limits: { maxPendingBytes: 20_000_000, maxPendingTotalBytes: 30_000_000 },
    });
    for (let i = 0; i < 20; i++) {
      const socket = await bed.dial("127.0.0.66");
      socket.pause();
      // Pipelined: as many responses as fit.
      socket.write(GET.replace("/", "/large").repeat(i % 3 === 0 ? 1 : 50));
      await until(() => bed.server.counters().acceptedConnections === i + 1);
    }
    const other = await bed.dial("127.0.0.2");
    other.write(GET.replace("/", "/large"));
    let receivedBytes = 0;
    other.on("data", (chunk: Buffer) => {
      receivedBytes += chunk.length;
    });
    await until(() => receivedBytes > 4_000_000 || other.destroyed);
    assert.equal(other.destroyed, false);
    assert.ok(bed.server.counters().pendingBytes <= 30_000_000);
    assert.ok(bed.server.counters().http2.largestHolderCuts > 0);
    const closed = bed.server.close(0);
    bed.clock.advance(1);
    await closed;
    assert.equal(bed.server.counters().pendingBytes, 0);
  });

  test("one client does not write a line into the log for each refusal", async (t) => {
    const bed = await start(t, { maxConnections: 2, httpIdleTimeoutMs: 60_000 });
    const busy = await bed.dial();
    busy.write(GET.replace("/", "/wait"));
    await until(() => bed.waiting === 1);
    for (let i = 0; i < 5; i++) {
      const socket = await bed.dial();
      socket.write(GREETING);
      await heard(socket);
    }
    assert.equal(bed.server.counters().refusedConnections, 5);
    assert.equal(
      bed.logger.lines.filter((line) => line.msg.startsWith("refused client connections")).length,
      1,
    );
  });
});
