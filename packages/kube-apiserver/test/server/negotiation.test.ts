import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { acceptsGzip } from "../../src/handlers/body-sink.ts";
import { Warnings } from "../../src/handlers/call.ts";
import {
  bodyEncoding,
  negotiate,
  type Offer,
  wantsPretty,
} from "../../src/handlers/negotiation.ts";

const OFFER: Offer = {
  encodings: ["json", "yaml", "protobuf"],
  allows: ({ kind }, encoding) => kind === "Table" && encoding === "json",
};

/** Accept headers, and the encoding, target and prettiness that they get. */
const ACCEPTED: readonly (readonly [string, string])[] = [
  ["", "json"],
  ["*/*", "json"],
  ["application/*", "json"],
  ["application/yaml", "yaml"],
  ["application/vnd.kubernetes.protobuf,application/json", "protobuf"],
  ["application/json;q=0.5,application/yaml", "yaml"],
  ["text/html,application/xhtml+xml,*/*;q=0.8", "json"],
  ["application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "json Table"],
  ["application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json", "json"],
  ["application/json;as=Other;v=v1;g=x,application/yaml", "yaml"],
  ["application/json;stream=watch", "json"],
  ["application/json;pretty=1", "json pretty"],
];

describe("content negotiation", () => {
  for (const [accept, expected] of ACCEPTED)
    it(`accepts ${JSON.stringify(accept)}`, () => {
      const { encoding, target, pretty } = negotiate(accept, OFFER);
      const shown = [encoding, target?.kind, pretty ? "pretty" : undefined];
      assert.equal(shown.filter((part) => part !== undefined).join(" "), expected);
    });

  it("refuses what it cannot send, and names what it can", () => {
    assert.throws(() => negotiate("text/html", OFFER), {
      httpStatus: 406,
      message:
        "only the following media types are accepted: application/json, application/yaml, " +
        "application/vnd.kubernetes.protobuf",
    });
  });

  it("reads the encoding of a body", () => {
    assert.equal(bodyEncoding(undefined, ["json"]), "json");
    assert.equal(bodyEncoding("application/json; charset=utf-8", ["json"]), "json");
    assert.throws(() => bodyEncoding("application/vnd.kubernetes.protobuf", ["json", "yaml"]), {
      httpStatus: 415,
      message: /accepted media types include: application\/json, application\/yaml$/,
    });
  });

  it("indents for people", () => {
    assert.equal(wantsPretty("", "curl/8"), true);
    assert.equal(wantsPretty("0", "curl/8"), false);
    assert.equal(wantsPretty("1", "kubectl/v1"), true);
    assert.equal(wantsPretty("", "kubectl/v1"), false);
  });

  it("compresses for clients that take gzip", () => {
    assert.equal(acceptsGzip("deflate, gzip"), true);
    assert.equal(acceptsGzip("br"), false);
  });
});

describe("warnings", () => {
  it("are quoted, each once", () => {
    const warnings = new Warnings();
    for (const text of ['unknown field "a"', "x\ny", 'unknown field "a"', ""]) warnings.add(text);
    assert.equal(warnings.header, '299 - "unknown field \\"a\\"", 299 - "x y"');
  });

  it("are cut where they are too long in all", () => {
    const warnings = new Warnings();
    for (let i = 0; i < 100; i++) warnings.add(`${i} ${"w".repeat(1000)}`);
    assert.ok(warnings.header!.length < 4 * 1024 + 16 * 20);
    assert.match(warnings.header!, /^299 - "0 w{254}", 299 - "1 w+"/);
  });
});
