/**
 * Crowds at the peer port: handshakes and headers that never end, outsiders that hold their place,
 * random bytes. Members reach each other all the same.
 */
import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { TlsOptions } from "@quorate/host/node";
import { ManualClock } from "@quorate/host/testing";
import { RecordingListener } from "@quorate/transport/testing";
import { makeAuthority, makeLocalCertificate } from "../../../test/support/certs.ts";
import { Tunnel } from "../src/tunnel.ts";
import { append } from "./helpers/messages.ts";
import { type MemberSettings, type RealMember, RealNetwork } from "./helpers/network.ts";

const CA = makeAuthority();
const CERTIFICATE = makeLocalCertificate(CA, "member");
const TLS: TlsOptions = {
  certPem: CERTIFICATE.certPem,
  keyPem: CERTIFICATE.keyPem,
  trustedCaPem: CA.certPem,
  clientCertAuth: true,
};
const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const INTRODUCTION = {
  ":method": "POST",
  "x-quorate-protocol": "1",
  "x-quorate-cluster-id": "c36a1e619c38211b",
  "x-quorate-from": "9",
  "x-quorate-to": "1",
  "x-quorate-server-version": "3.7.0",
  "x-quorate-min-cluster-version": "3.0.0",
};

async function network(t: TestContext, tls?: TlsOptions): Promise<RealNetwork> {
  const made = new RealNetwork(tls);
  t.after(() => made.close());
  return made;
}

function member(net: RealNetwork, id: bigint, settings: MemberSettings = {}): Promise<RealMember> {
  return net.start(id, new RecordingListener(), undefined, settings);
}

/** A connection to a member's peer port, from a loopback address. */
function dial(t: TestContext, to: RealMember, from = "127.0.0.66"): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect(
      {
        port: Number(new URL(to.urls[0]).port),
        host: "127.0.0.1",
        localAddress: from,
        noDelay: true,
      },
      () => resolve(socket),
    );
    socket.on("error", () => {});
    socket.resume();
    t.after(() => socket.destroy());
  });
}

/** Has member 2 send to member 1, and waits until that has arrived. */
async function reaches(net: RealNetwork, from: RealMember, to: RealMember): Promise<void> {
  from.transport.addPeer(to.id, to.urls);
  await net.until("the link is up", () =>
    from.transport.peers().some((peer) => peer.id === to.id && peer.activeSinceMs !== undefined),
  );
  const before = to.listener.messages.length;
  from.transport.send([append(from.id, to.id, 1, 10)]);
  await net.until("a message arrives", () => to.listener.messages.length > before);
}

describe("handshakes and headers that never end", () => {
  const slow: Readonly<
    Record<string, { readonly tls: TlsOptions | undefined; readonly bytes: Buffer }>
  > = {
    "a TLS record": {
      tls: TLS,
      bytes: Buffer.concat([
        Buffer.from([0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc, 3, 3]),
        Buffer.alloc(100),
      ]),
    },
    "HTTP/1 headers": {
      tls: undefined,
      bytes: Buffer.from(`GET /members HTTP/1.1\r\n${"x-y: z\r\n".repeat(20)}`),
    },
    "HTTP/2's preface": { tls: undefined, bytes: Buffer.from(PREFACE) },
    "a member's introduction": {
      tls: undefined,
      bytes: Buffer.from(Tunnel.request({ ...INTRODUCTION, ":path": "/raft/stream/urgent" })),
    },
  };
  for (const [name, { tls, bytes }] of Object.entries(slow)) {
    it(`${name}, one byte every three seconds: the socket is closed at its deadline`, async (t) => {
      const net = await network(t, tls);
      const clock = new ManualClock();
      const a = await member(net, 1n, { clock });
      const socket = await dial(t, a);
      await net.until("it is there", () => a.transport.incomingConnections === 1);
      const startMs = clock.monotonicMs();
      for (let at = 0; at < 12 && a.transport.incomingConnections > 0; at++) {
        socket.write(bytes.subarray(at, at + 1));
        await new Promise((resolve) => setTimeout(resolve, 3));
        for (let second = 0; second < 3; second++) clock.advance(1000);
      }
      await net.until(
        "it is gone",
        () => socket.destroyed && a.transport.incomingConnections === 0,
      );
      assert.ok(clock.monotonicMs() - startMs <= 24_000, `${clock.monotonicMs() - startMs} ms`);
      assert.equal(a.transport.slotCounters.timedOut, 1);
    });
  }

  for (const tls of [undefined, TLS]) {
    it(`a thousand at a time do not keep members out, ${tls ? "with TLS" : "in plain text"}`, async (t) => {
      const net = await network(t, tls);
      const a = await member(net, 1n, { options: { maxIncomingConnections: 64 } });
      const b = await member(net, 2n);
      for (let i = 0; i < 200; i++)
        (await dial(t, a)).write(tls ? "\x16" : "GET /members HTTP/1.1\r\n");
      await net.until(
        "they are there",
        () => a.transport.slotCounters.displacedUnidentified >= 184,
      );
      await reaches(net, b, a);
      // Those from the member's own address do not either.
      for (let i = 0; i < 100; i++)
        (await dial(t, a, "127.0.0.1")).write(tls ? "\x16" : "GET /members HTTP/1.1\r\n");
      await reaches(net, b, a);
      assert.ok(a.transport.incomingConnections <= 16 + 2);
    });
  }
});

describe("outsiders", () => {
  it("that ask and stay are held in their own share, whatever they speak", async (t) => {
    const net = await network(t);
    const a = await member(net, 1n, { options: { maxIncomingConnections: 32 } });
    const b = await member(net, 2n);
    for (let i = 0; i < 40; i++)
      (await dial(t, a)).write("GET /members HTTP/1.1\r\nhost: x\r\n\r\n");
    for (let i = 0; i < 20; i++) {
      const session = connectHttp2(a.urls[0]);
      session.on("error", () => {});
      t.after(() => session.destroy());
      const stream = session.request({ ":path": "/members" });
      stream.on("error", () => {});
      await new Promise((resolve) => stream.resume().on("close", resolve));
    }
    await net.until(
      "their share is full",
      () => a.transport.slotCounters.displacedUnidentified >= 52,
    );
    await reaches(net, b, a);
    assert.ok(a.transport.incomingConnections <= 8 + 2);
  });

  it("that send random bytes are thrown out, and the member goes on", async (t) => {
    const net = await network(t);
    const a = await member(net, 1n);
    const b = await member(net, 2n);
    a.transport.addPeer(9n, ["http://127.0.0.1:1"]);
    const random = new SeededRandom(11n);
    const bytes = (most: number) =>
      Buffer.from(Array.from({ length: random.below(most) }, () => random.below(256)));
    const openings: readonly (() => Buffer)[] = [
      () => Buffer.alloc(0),
      () => Buffer.from("GET /members HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n"),
      () =>
        Buffer.from(
          "POST /members/promote/1 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
      () => Buffer.from(PREFACE),
      () => Buffer.from(`${PREFACE}\0\0\0\u0004\0\0\0\0\0`, "latin1"),
      () => Buffer.from(Tunnel.request({ ...INTRODUCTION, ":path": "/raft/stream/bulk" })),
      () => Buffer.from(Tunnel.request({ ...INTRODUCTION, ":path": "/raft/snapshot" })),
    ];
    for (let i = 0; i < 300; i++) {
      const socket = await dial(t, a);
      socket.write(Buffer.concat([openings[i % openings.length](), bytes(2000)]));
      if (random.below(2) === 0) socket.end();
      else setTimeout(() => socket.destroy(), random.below(20));
    }
    await reaches(net, b, a);
  });

  it("that send snapshots of random bytes take up no place for long", async (t) => {
    const net = await network(t);
    const a = await member(net, 1n, { options: { maxSnapshots: 4 } });
    // It is known, or nothing of it would be read.
    a.transport.addPeer(9n, ["http://127.0.0.1:1"]);
    const random = new SeededRandom(12n);
    for (let i = 0; i < 60; i++) {
      const session = connectHttp2(a.urls[0]);
      session.on("error", () => {});
      const stream = session.request({ ...INTRODUCTION, ":path": "/raft/snapshot" });
      stream.on("error", () => {});
      stream.write(
        Buffer.from(Array.from({ length: 1 + random.below(500) }, () => random.below(256))),
      );
      if (i % 3 === 0) stream.end();
      const status = await new Promise<number>((resolve) => {
        stream.on("response", (headers) => resolve(Number(headers[":status"])));
        stream.on("close", () => resolve(0));
        setTimeout(() => resolve(-1), 20);
      });
      assert.ok([0, -1, 400, 500, 503].includes(status), String(status));
      session.destroy();
    }
    const b = await member(net, 2n);
    await reaches(net, b, a);
  });
});

describe("a snapshot that does not come along", () => {
  const stall = {
    options: { maxSnapshots: 1, snapshotStallTimeoutMs: 30_000, incomingIdleTimeoutMs: 1e9 },
  };

  it("is given up, however regularly a byte comes, and the next one has its place", async (t) => {
    const net = await network(t);
    const clock = new ManualClock();
    const a = await member(net, 1n, { ...stall, clock });
    for (const id of [7n, 8n, 9n]) a.transport.addPeer(id, ["http://127.0.0.1:1"]);
    const ask = (from: string) => {
      const session = connectHttp2(a.urls[0]);
      session.on("error", () => {});
      t.after(() => session.destroy());
      const stream = session.request({
        ...INTRODUCTION,
        "x-quorate-from": from,
        ":path": "/raft/snapshot",
      });
      stream.on("error", () => {});
      stream.resume();
      const status = new Promise<number>((resolve) => {
        stream.on("response", (headers) => resolve(Number(headers[":status"])));
        stream.on("close", () => resolve(0));
      });
      return { stream, status };
    };
    // A prefix that promises a message of ten thousand bytes.
    const first = ask("9");
    first.stream.write(Buffer.from([0, 0, 0x27, 0x10]));
    await net.until("it is there", () => a.transport.incomingConnections === 1);
    // A client of HTTP/2 may wait for settings, so the server waits for a second before it decides.
    let late = false;
    void first.status.then(() => {
      late = true;
    });
    for (let second = 0; second < 28; second++) {
      clock.advance(1000);
      first.stream.write("x");
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    assert.equal(late, false);
    const refused = ask("8");
    refused.stream.write(Buffer.from([0, 0, 0x27, 0x10]));
    await net.until("the second one is there", () => a.transport.incomingConnections === 2);
    for (let second = 0; second < 2; second++) {
      clock.advance(1000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(await refused.status, 503);
    for (let second = 0; second < 40 && !late; second++) {
      clock.advance(1000);
      first.stream.write("x");
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await first.status;
    await net.until(
      "it was given up",
      () => a.logger.find("warn", "failed to save incoming database snapshot").length === 1,
    );
    assert.match(
      String(a.logger.lines.find((line) => line.msg.startsWith("failed to save"))!.fields["error"]),
      /no progress for 30000 ms/,
    );
  });
});
