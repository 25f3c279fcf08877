import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { encodeGrpcMessage, parseTimeoutMs, unknownMethodText } from "../src/grpc/protocol.ts";

describe("grpc-message", () => {
  it("leaves printable ASCII as it is", () => {
    assert.equal(
      encodeGrpcMessage("etcdserver: mvcc: required revision is a future revision"),
      "etcdserver: mvcc: required revision is a future revision",
    );
    assert.equal(encodeGrpcMessage(""), "");
  });

  it("encodes the rest as UTF-8", () => {
    assert.equal(
      encodeGrpcMessage("100%\n\u0001\u007fü\u{1f600}"),
      "100%25%0A%01%7F%C3%BC%F0%9F%98%80",
    );
    assert.equal(encodeGrpcMessage("a\ud800b"), "a%EF%BF%BDb");
  });

  it("can be decoded again, and is a legal header", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const encoded = encodeGrpcMessage(text);
        assert.match(encoded, /^[ -~]*$/);
        assert.equal(decodeURIComponent(encoded), text.toWellFormed());
      }),
      { seed: 7, numRuns: 500 },
    );
  });
});

describe("grpc-timeout", () => {
  it("is a number and a unit", () => {
    const cases: [string, number | undefined][] = [
      ["1H", 3_600_000],
      ["2M", 120_000],
      ["5S", 5000],
      ["4999m", 4999],
      ["1500u", 1.5],
      ["99999999n", 99.999999],
      ["0m", 0],
      ["", undefined],
      ["m", undefined],
      ["5", undefined],
      ["5x", undefined],
      ["123456789m", undefined],
      ["-1m", undefined],
      ["1.5S", undefined],
    ];
    for (const [text, ms] of cases) assert.equal(parseTimeoutMs(text), ms, text);
  });
});

describe("a method that is not there", () => {
  const services = {
    unary: new Map([["/etcdserverpb.KV/Put", () => new Uint8Array(0)]]),
    stream: new Map([["/etcdserverpb.Watch/Watch", () => ({})]]),
  };
  it("is answered with grpc-go's text", () => {
    const cases: [string, string][] = [
      ["/etcdserverpb.KV/Foo", "unknown method Foo for service etcdserverpb.KV"],
      ["/etcdserverpb.Watch/Foo", "unknown method Foo for service etcdserverpb.Watch"],
      ["/etcdserverpb.K/Put", "unknown service etcdserverpb.K"],
      ["/a/b/c", "unknown service a/b"],
      ["/nothing", 'malformed method name: "/nothing"'],
      ["nothing/at", 'malformed method name: "nothing/at"'],
    ];
    for (const [path, text] of cases) assert.equal(unknownMethodText(services, path), text);
  });
});
