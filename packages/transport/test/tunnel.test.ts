import assert from "node:assert/strict";
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type ServerHttp2Stream,
} from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, it } from "node:test";
import { concat, fromLatin1, toLatin1 } from "@quorate/proto";
import fc from "fast-check";
import { FrameError } from "../src/frames.ts";
import {
  type Fields,
  FRAME_HEAD_BYTES,
  MAX_HEAD_BYTES,
  openingOf,
  PREFACE,
  Tunnel,
} from "../src/tunnel.ts";

const SEED = 20_260_103;
const HEAD: Fields = {
  ":method": "POST",
  ":scheme": "http",
  ":authority": "peer",
  ":path": "/raft/stream/bulk",
  "x-a": "b".repeat(300),
};

/** A side of a tunnel that writes down what comes. */
class Side {
  heads: Fields[] = [];
  dataBytes: Uint8Array[] = [];
  keepsData = true;
  pongs = 0;
  hasEnded = false;
  readonly tunnel = new Tunnel({
    head: (fields) => this.heads.push(fields),
    data: (bytes) => {
      if (this.keepsData) this.dataBytes.push(bytes.slice());
    },
    pong: () => this.pongs++,
    ended: () => {
      this.hasEnded = true;
    },
  });

  get text(): string {
    return toLatin1(concat(this.dataBytes));
  }

  /** What it sends for these bytes. */
  wrap(...texts: string[]): Uint8Array {
    const pieces = texts.map(fromLatin1);
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    return concat(
      this.tunnel.wrap(
        [concat([new Uint8Array(FRAME_HEAD_BYTES), pieces[0]]), ...pieces.slice(1)],
        bytes,
      ),
    );
  }
}

/** A pair that has shaken hands. */
function pair(): { dialler: Side; acceptor: Side } {
  const [dialler, acceptor] = [new Side(), new Side()];
  acceptor.tunnel.push(Tunnel.request(HEAD).subarray(PREFACE.length));
  dialler.tunnel.push(
    concat([Tunnel.agreement({ ":status": "200" }), acceptor.tunnel.takeReplies()!]),
  );
  acceptor.tunnel.push(dialler.tunnel.takeReplies()!);
  assert.equal(acceptor.tunnel.takeReplies(), undefined);
  return { dialler, acceptor };
}

describe("a tunnel", () => {
  it("carries heads, data and pings, wherever the bytes are cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 50 }), {
          minLength: 1,
        }),
        fc.nat(30),
        (texts, cut) => {
          const { dialler, acceptor } = pair();
          assert.deepEqual([acceptor.heads, dialler.heads], [[HEAD], [{ ":status": "200" }]]);
          const bytes = concat([...texts.map((text) => dialler.wrap(text)), Tunnel.ping()]);
          for (let at = 0; at < bytes.length; at += cut + 1)
            acceptor.tunnel.push(bytes.subarray(at, at + cut + 1));
          assert.equal(acceptor.text, texts.join(""));
          dialler.tunnel.push(acceptor.tunnel.takeReplies()!);
          assert.deepEqual([dialler.pongs, acceptor.pongs, dialler.hasEnded], [1, 0, false]);
        },
      ),
      { seed: SEED },
    );
  });

  it("cuts what is longer than a frame may be", () => {
    const { dialler, acceptor } = pair();
    const texts = ["a".repeat(10_000_000), "b".repeat(10_000_000), "c"];
    acceptor.tunnel.push(dialler.wrap(...texts));
    assert.equal(acceptor.text, texts.join(""));
  });

  it("never sends beyond the window that it has, and is given more for what was received", () => {
    const fresh = new Side();
    fresh.wrap("x".repeat(65_535));
    assert.throws(() => fresh.wrap("x"), new FrameError("the peer's window is closed"));
    const { dialler, acceptor } = pair();
    // What comes is not looked at: a copy of all would take seconds.
    acceptor.keepsData = false;
    const piece = new Uint8Array(FRAME_HEAD_BYTES + 0xff_ffff);
    let refills = 0;
    // More than both windows had at first.
    for (let sentBytes = 0; sentBytes < 3 * 2 ** 30; sentBytes += 0xff_ffff) {
      dialler.tunnel.wrap([piece], 0xff_ffff);
      acceptor.tunnel.push(piece.subarray(0, FRAME_HEAD_BYTES));
      for (let at = FRAME_HEAD_BYTES; at < piece.length; at += 2 ** 22)
        acceptor.tunnel.push(piece.subarray(at, at + 2 ** 22));
      const replies = acceptor.tunnel.takeReplies();
      if (replies === undefined) continue;
      refills++;
      dialler.tunnel.push(replies);
    }
    assert.equal(refills, 2);
  });

  it("understands padding, and passes over what it does not know", () => {
    const { acceptor } = pair();
    const padded = [0, 0, 6, 0, 8, 0, 0, 0, 1, 3, 104, 105, 0, 0, 0];
    for (const byte of padded) acceptor.tunnel.push(Uint8Array.of(byte));
    acceptor.tunnel.push(Uint8Array.from([...padded, 0, 0, 2, 99, 0, 0, 0, 0, 7, 1, 2]));
    assert.equal(acceptor.text, "hihi");
    const before = acceptor.dataBytes.length;
    acceptor.tunnel.push(Uint8Array.from([0, 0, 3, 0, 8, 0, 0, 0, 1, 2, 0, 0]));
    assert.equal(acceptor.dataBytes.length, before, "padding alone is no data");
    // The longest frame of those that are passed over.
    acceptor.tunnel.push(Uint8Array.from([0, 64, 0, 99, 0, 0, 0, 0, 7]));
    acceptor.tunnel.push(new Uint8Array(MAX_HEAD_BYTES));
    acceptor.tunnel.push(Uint8Array.from(padded));
    assert.equal(acceptor.text, "hihihi");
  });

  it("ends when the other side does, and says what is wrong with bytes that are not HTTP/2", () => {
    const ends = [
      [0, 0, 0, 0, 1, 0, 0, 0, 1],
      [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8],
      [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    for (const bytes of ends) {
      const { acceptor } = pair();
      acceptor.tunnel.push(Uint8Array.from(bytes));
      assert.ok(acceptor.hasEnded);
    }
    const wrong: [RegExp, number[]][] = [
      [/data for stream 3/, [0, 0, 1, 0, 0, 0, 0, 0, 3, 1]],
      [/frame of 16777215 bytes, type 4/, [255, 255, 255, 4, 0, 0, 0, 0, 0]],
      [/settings that are cut/, [0, 0, 5, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5]],
      [/window of 4294967295 bytes/, [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 255, 255, 255, 255]],
      [/frame size of 1 bytes/, [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1]],
      [/ping of 1 bytes/, [0, 0, 1, 6, 0, 0, 0, 0, 0, 1]],
      [/window update by 0 bytes/, [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
      [/window update by 2147483647 bytes/, [0, 0, 4, 8, 0, 0, 0, 0, 0, 127, 255, 255, 255]],
      [/head that no member of Quorate writes/, [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x82]],
      [/head that no member of Quorate writes/, [...Buffer.from("HTTP/1.1 400 Bad Request")]],
      [/frame of type 9/, [0, 0, 0, 9, 0, 0, 0, 0, 1]],
    ];
    for (const [message, bytes] of wrong) {
      const { acceptor } = pair();
      assert.throws(() => acceptor.tunnel.push(Uint8Array.from(bytes)), message);
    }
  });

  it("distinguishes a member's opening from others, as soon as it can", () => {
    const opening = Tunnel.request(HEAD);
    for (let at = 0; at < opening.length; at++)
      assert.equal(openingOf(opening.subarray(0, at)).kind, "unclear");
    assert.deepEqual(openingOf(opening), { kind: "member", fields: HEAD });
    assert.equal(openingOf(fromLatin1("GET / HTTP/1.1\r\n")).kind, "other");
    assert.equal(openingOf(concat([PREFACE, Tunnel.ping()])).kind, "other");
    const manySettings = concat([
      PREFACE,
      ...Array.from({ length: 4000 }, () => Uint8Array.from([0, 0, 0, 4, 0, 0, 0, 0, 0])),
    ]);
    assert.equal(openingOf(manySettings).kind, "other");
    // The longest opening that may still be one.
    const filled = Uint8Array.from([0, 63, 255, 4, 0, 0, 0, 0, 0]);
    const long = new Uint8Array(2 * MAX_HEAD_BYTES + 1);
    long.set(PREFACE);
    for (const at of [PREFACE.length, PREFACE.length + filled.length + 16_383])
      long.set(filled, at);
    assert.equal(openingOf(long.subarray(0, -1)).kind, "unclear");
    assert.equal(openingOf(long).kind, "other");
  });
});

describe("a tunnel is HTTP/2", () => {
  it("to Node's server", async (t) => {
    const server = createHttp2Server();
    const received: string[] = [];
    server.on("stream", (stream: ServerHttp2Stream, headers) => {
      received.push(`${headers[":method"]} ${headers[":path"]} ${headers["x-a"]}`);
      stream.respond({ ":status": 200 });
      stream.on("data", (chunk: Buffer) => received.push(chunk.toString()));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    t.after(() => {
      socket.destroy();
      server.close();
    });
    const side = new Side();
    let hadSettings = false;
    // Node's answer has a head that no member writes; what comes before it, and the answer to the
    // ping, is all that is looked at.
    const acknowledged = new Promise<void>((resolve) => {
      socket.on("data", (chunk: Buffer) => {
        if (hadSettings)
          return chunk.includes(Buffer.from([0, 0, 8, 6, 1, 0, 0, 0, 0])) ? resolve() : undefined;
        side.tunnel.push(chunk.subarray(0, FRAME_HEAD_BYTES + chunk.readUIntBE(0, 3)));
        hadSettings = true;
        socket.write(side.tunnel.takeReplies()!);
        socket.write(side.wrap("hello"));
        socket.write(Tunnel.ping());
      });
    });
    socket.write(Tunnel.request(HEAD));
    await acknowledged;
    assert.deepEqual(received, [`POST /raft/stream/bulk ${"b".repeat(300)}`, "hello"]);
  });

  it("to Node's client, agreement and refusal", async (t) => {
    const answers = [
      Tunnel.agreement({ ":status": "200", "x-b": "c" }),
      Tunnel.refusal({ ":status": "412" }, fromLatin1("no\n")),
    ];
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      socket.once("data", () => socket.write(answers.shift()!));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const ask = async (): Promise<string> => {
      const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      session.on("error", () => {});
      const stream = session.request(
        { ":method": "POST", ":path": "/raft/stream/bulk" },
        { endStream: false },
      );
      stream.on("error", () => {});
      let text = "";
      stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
      const status = await new Promise<unknown>((resolve) =>
        stream.on("response", (headers) =>
          resolve(`${headers[":status"]} ${headers["x-b"] ?? ""}`),
        ),
      );
      if (status !== "200 c") await new Promise((resolve) => stream.on("end", resolve));
      session.destroy();
      return `${status}: ${text}`;
    };
    assert.equal(await ask(), "200 c: ");
    assert.equal(await ask(), "412 : no\n");
  });
});
