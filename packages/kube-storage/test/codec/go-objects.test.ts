/**
 * Objects that Kubernetes 1.36's own codecs wrote, as JSON and as protobuf: each field filled, and
 * none filled. Ours must read both into the same object and write the same bytes.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import { fromUtf8 } from "@quorate/proto";
import { kindSource, metaProtobuf } from "../../src/codec/builtin-kind.ts";

interface Written {
  readonly group: string;
  readonly kind: string;
  readonly json: Record<string, unknown>;
  readonly protobuf: string;
}

const file = new URL("./go-objects.jsonl.gz", import.meta.url);
const written = gunzipSync(readFileSync(file))
  .toString()
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Written);

describe("objects that Go wrote", () => {
  it("are enough to judge by", () => {
    assert.equal(written.length, 50);
  });

  for (const [index, { group, kind, json, protobuf }] of written.entries()) {
    const source = kindSource(group, "v1", kind);
    const bytes = new Uint8Array(Buffer.from(protobuf, "base64"));
    const filled = index % 2 === 0 ? "filled" : "empty";

    it(`${group} ${kind}, ${filled}: protobuf is read as Go's JSON, in its order`, () => {
      const { message } = metaProtobuf.unwrap(bytes);
      assert.equal(JSON.stringify(source.protobuf.decode(message)), JSON.stringify(json));
    });

    it(`${group} ${kind}, ${filled}: JSON is kept, and written as Go's protobuf`, () => {
      const { object, strictErrors } = source.decode(json);
      assert.deepEqual(strictErrors, []);
      assert.equal(JSON.stringify(object), JSON.stringify(json));
      const message = source.protobuf.encode(object);
      const enveloped = metaProtobuf.wrap(object.apiVersion, object.kind, message);
      assert.equal(Buffer.from(enveloped).toString("base64"), protobuf);
    });

    it(`${group} ${kind}, ${filled}: both encodings at rest are read`, () => {
      const fromJson = source.codec.decode(fromUtf8(JSON.stringify(json)));
      assert.deepEqual(source.codec.decode(bytes), fromJson);
    });
  }
});
