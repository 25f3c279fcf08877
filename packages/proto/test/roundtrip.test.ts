/** Every message type against protobufjs' reflection on the same .proto files. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { concat } from "../src/wire/bytes.ts";
import { message, ours, SEED, splitFields, theirs } from "./reflect.ts";

test("every message of proto/ has a generated type and the reverse", () => {
  assert.deepEqual([...ours.keys()].sort(), [...theirs.keys()].sort());
  assert.ok(ours.size > 140, `only ${ours.size} types`);
});

for (const [name, type] of theirs) {
  const mine = ours.get(name)!;
  const options = { seed: SEED, numRuns: 100 };

  test(`${name}: encodes as protobufjs does, decodes what either wrote`, () => {
    fc.assert(
      fc.property(message(type), (pair) => {
        const encoded = mine.encode(pair.ours);
        const reference = new Uint8Array(type.encode(pair.theirs).finish());
        assert.deepEqual(encoded, reference);
        assert.deepEqual(mine.decode(encoded), pair.ours);
        assert.deepEqual(mine.create(pair.ours), pair.ours);
        assert.deepEqual(mine.encode(mine.decode(encoded)), encoded);
      }),
      options,
    );
  });

  test(`${name}: order of fields does not matter and unknown fields are skipped`, () => {
    const unknown = [
      Uint8Array.of(0xf8, 0xff, 0xff, 0xff, 0x0f, 0x80, 0x01), // varint
      Uint8Array.of(0xf9, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3, 4, 5, 6, 7, 8), // eight bytes
      Uint8Array.of(0xfa, 0xff, 0xff, 0xff, 0x0f, 2, 0xff, 0xff), // length and bytes
      Uint8Array.of(0xfd, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3, 4), // four bytes
    ];
    fc.assert(
      fc.property(message(type, 2), fc.infiniteStream(fc.nat()), (pair, random) => {
        const groups = new Map<number, Uint8Array[]>();
        for (const field of splitFields(mine.encode(pair.ours)))
          groups.set(field.id, [...(groups.get(field.id) ?? []), field.bytes]);
        const parts = [...groups.values()].map(concat);
        for (const extra of unknown)
          parts.splice(random.next().value % (parts.length + 1), 0, extra);
        const shuffled = parts
          .map((part) => ({ part, at: random.next().value }))
          .sort((a, b) => a.at - b.at);
        assert.deepEqual(mine.decode(concat(shuffled.map(({ part }) => part))), pair.ours);
      }),
      { ...options, numRuns: 40 },
    );
  });
}

test("missing fields count as defaults", () => {
  for (const [name, mine] of ours) {
    assert.deepEqual(mine.encode({}), mine.encode(mine.create()), name);
    assert.deepEqual(mine.decode(new Uint8Array(0)), mine.create(), name);
    assert.equal(mine.typeName, name);
  }
});
