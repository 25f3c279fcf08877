import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { http2, toHex } from "../index.ts";

const { decodePlainFields, encodePlainFields, Flag, FrameType, frame } = http2;
const HEAD = {
  ":method": "POST",
  ":path": "/raft/stream/append",
  "x-empty": "",
  "x-long": "y".repeat(300),
};

describe("frames", () => {
  it("are as RFC 9113 draws them", () => {
    const data = frame(FrameType.Data, Flag.EndStream, 0x0102_0304, Uint8Array.of(7, 8));
    assert.equal(toHex(data), "000002" + "00" + "01" + "01020304" + "0708");
    assert.equal(
      toHex(http2.settingsFrame([http2.Setting.InitialWindowSize, 0x7fff_ffff], [0x0809, 1])),
      "00000c" + "04" + "00" + "00000000" + "0004" + "7fffffff" + "0809" + "00000001",
    );
    assert.equal(
      toHex(http2.windowUpdateFrame(5, 0x0001_0203)),
      "000004" + "08" + "00" + "00000005" + "00010203",
    );
    assert.equal(
      toHex(frame(FrameType.Data, 0, 1, new Uint8Array(0x01_0203)).subarray(0, 3)),
      "010203",
    );
  });
});

describe("plain fields", () => {
  it("come out as they went in; what is cut or otherwise written is noticed", () => {
    const block = encodePlainFields(Object.entries(HEAD));
    assert.deepEqual(decodePlainFields(block), HEAD);
    assert.deepEqual(decodePlainFields(encodePlainFields([["long", "x".repeat(70_000)]])), {
      long: "x".repeat(70_000),
    });
    for (let at = 1; at < block.length; at++) {
      const some = decodePlainFields(block.subarray(0, at));
      assert.ok(some === undefined || Object.keys(some).length < Object.keys(HEAD).length);
    }
    // An indexed field, a Huffman coded name, a length without end.
    for (const bytes of [[0x82], [0, 0x83, 1, 2, 3, 0], [0, 0x7f, 0xff, 0xff, 0xff, 0xff]]) {
      assert.equal(decodePlainFields(Uint8Array.from(bytes)), undefined);
    }
  });
});
