/** HPACK against the examples of RFC 7541 appendix C, its own rules, and random field lists. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { fromHex, toHex, toLatin1 } from "@quorate/proto";
import { HpackError } from "../src/hpack/errors.ts";
import { NameId, nameIdOf } from "../src/hpack/header-field.ts";
import { type EncodableField, HpackDecoder, HpackEncoder, Indexing } from "../src/hpack/hpack.ts";
import {
  CODE_BITS,
  CODES,
  huffmanDecode,
  huffmanEncode,
  huffmanLength,
  maxDecodedBytes,
} from "../src/hpack/huffman.ts";
import { STATIC_TABLE } from "../src/hpack/static-table.ts";

const LIST_BYTES = 65536;

function decode(decoder: HpackDecoder, hex: string): string[] {
  const bytes = fromHex(hex.replaceAll(" ", ""));
  return decoder.decode(bytes, 0, bytes.length).map((field) => `${field.name}: ${field.value}`);
}

function fresh(hex: string): string[] {
  return decode(new HpackDecoder(4096, LIST_BYTES), hex);
}

/** Requests or answers on one connection: block, its fields, the table's size afterwards. */
type Example = readonly (readonly [hex: string, fields: readonly string[], tableBytes: number])[];

const REQUESTS: readonly (readonly string[])[] = [
  [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"],
  [
    ":method: GET",
    ":scheme: http",
    ":path: /",
    ":authority: www.example.com",
    "cache-control: no-cache",
  ],
  [
    ":method: GET",
    ":scheme: https",
    ":path: /index.html",
    ":authority: www.example.com",
    "custom-key: custom-value",
  ],
];
const DATE_1 = "Mon, 21 Oct 2013 20:13:21 GMT";
const DATE_2 = "Mon, 21 Oct 2013 20:13:22 GMT";
const RESPONSES: readonly (readonly string[])[] = [
  [
    ":status: 302",
    "cache-control: private",
    `date: ${DATE_1}`,
    "location: https://www.example.com",
  ],
  [
    ":status: 307",
    "cache-control: private",
    `date: ${DATE_1}`,
    "location: https://www.example.com",
  ],
  [
    ":status: 200",
    "cache-control: private",
    `date: ${DATE_2}`,
    "location: https://www.example.com",
    "content-encoding: gzip",
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
  ],
];

const EXAMPLES: Readonly<Record<string, { tableBytes: number; blocks: Example }>> = {
  "C.3 requests without Huffman code": {
    tableBytes: 4096,
    blocks: [
      ["828684410f7777772e6578616d706c652e636f6d", REQUESTS[0], 57],
      ["828684be58086e6f2d6361636865", REQUESTS[1], 110],
      ["828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", REQUESTS[2], 164],
    ],
  },
  "C.4 requests with Huffman code": {
    tableBytes: 4096,
    blocks: [
      ["828684418cf1e3c2e5f23a6ba0ab90f4ff", REQUESTS[0], 57],
      ["828684be5886a8eb10649cbf", REQUESTS[1], 110],
      ["828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", REQUESTS[2], 164],
    ],
  },
  "C.5 responses without Huffman code": {
    tableBytes: 256,
    blocks: [
      [
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f" +
          "7777772e6578616d706c652e636f6d",
        RESPONSES[0],
        222,
      ],
      ["4803333037c1c0bf", RESPONSES[1], 222],
      [
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b42" +
          "5a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
        RESPONSES[2],
        215,
      ],
    ],
  },
  "C.6 responses with Huffman code": {
    tableBytes: 256,
    blocks: [
      [
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        RESPONSES[0],
        222,
      ],
      ["4883640effc1c0bf", RESPONSES[1], 222],
      [
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f" +
          "3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        RESPONSES[2],
        215,
      ],
    ],
  },
};

describe("RFC 7541 appendix C", () => {
  test("C.1 integers, seen through table sizes and lengths", () => {
    // 10 in five bits, 1337 in five bits (C.1.1, C.1.2) as table sizes.
    assert.deepEqual(fresh("2a"), []);
    const decoder = new HpackDecoder(1337, LIST_BYTES);
    assert.deepEqual(decode(decoder, "3f9a0a"), []);
    assert.throws(() => decode(new HpackDecoder(1336, LIST_BYTES), "3f9a0a"), HpackError);
  });

  test("C.2 single fields", () => {
    const decoder = new HpackDecoder(4096, LIST_BYTES);
    assert.deepEqual(decode(decoder, "400a637573746f6d2d6b65790d637573746f6d2d686561646572"), [
      "custom-key: custom-header",
    ]);
    assert.equal(decoder.tableBytes, 55);
    assert.deepEqual(fresh("040c2f73616d706c652f70617468"), [":path: /sample/path"]);
    assert.deepEqual(fresh("100870617373776f726406736563726574"), ["password: secret"]);
    assert.deepEqual(fresh("82"), [":method: GET"]);
  });

  for (const [name, { tableBytes, blocks }] of Object.entries(EXAMPLES)) {
    test(name, () => {
      const decoder = new HpackDecoder(tableBytes, LIST_BYTES);
      for (const [hex, fields, size] of blocks) {
        assert.deepEqual(decode(decoder, hex), fields);
        assert.equal(decoder.tableBytes, size);
      }
    });
  }

  test("C.4 and C.6 are what the encoder writes", () => {
    for (const name of ["C.4 requests with Huffman code", "C.6 responses with Huffman code"]) {
      const { tableBytes, blocks } = EXAMPLES[name];
      const encoder = new HpackEncoder(tableBytes);
      for (const [i, [hex, fields]] of blocks.entries()) {
        const list = fields.map((field) => {
          const colon = field.indexOf(": ");
          return {
            name: field.slice(0, colon),
            value: field.slice(colon + 2),
            indexing: Indexing.Add,
          };
        });
        // The examples assume the table's size; the encoder has to announce it.
        const announced = i === 0 && tableBytes < 4096 ? "3fe101" : "";
        assert.equal(toHex(encoder.encode(list)), announced + hex);
      }
    }
  });
});

describe("Huffman code", () => {
  test("spot checks of the code", () => {
    assert.equal(CODES["0".charCodeAt(0)], 0);
    assert.equal(CODE_BITS["0".charCodeAt(0)], 5);
    assert.equal(CODES[" ".charCodeAt(0)], 0x14);
    assert.equal(CODES[0], 0x1ff8);
    assert.equal(CODES[10], 0x3ffffffc);
    assert.equal(CODES[256], 0x3fffffff);
  });

  test("every byte and random strings come back", () => {
    const random = new SeededRandom(1n);
    const texts = [Array.from({ length: 256 }, (_, i) => String.fromCharCode(i)).join("")];
    for (let i = 0; i < 2000; i++)
      texts.push(
        Array.from({ length: random.below(40) }, () => String.fromCharCode(random.below(256))).join(
          "",
        ),
      );
    for (const text of texts) {
      const coded = new Uint8Array(huffmanLength(text));
      assert.equal(huffmanEncode(text, coded, 0), coded.length);
      const out = new Uint8Array(maxDecodedBytes(coded.length));
      assert.equal(toLatin1(out, 0, huffmanDecode(coded, 0, coded.length, out)), text);
    }
  });

  test("invalid padding and EOS", () => {
    const out = new Uint8Array(64);
    const bad = (hex: string) =>
      assert.throws(() => huffmanDecode(fromHex(hex), 0, hex.length / 2, out), HpackError, hex);
    // "0" is 00000; its padding must be 111.
    assert.equal(huffmanDecode(fromHex("07"), 0, 1, out), 1);
    bad("00");
    bad("06");
    // A whole byte of padding, EOS itself, and the first byte of a longer code.
    bad("07ff");
    bad("ffffffff");
    bad("fffffffc");
    bad("ff");
  });
});

describe("decoder", () => {
  test("refuses what RFC 7541 refuses", () => {
    const bad = (hex: string, decoder = new HpackDecoder(4096, LIST_BYTES)) =>
      assert.throws(() => decode(decoder, hex), HpackError, hex);
    bad("80"); // index 0
    bad("be"); // an empty dynamic table
    bad("7f00"); // literal with an index beyond the tables
    bad("ff"); // ends within an integer
    bad("ffffffffffffff7f"); // an integer without end
    bad("ff808080808080808080808000");
    bad("40"); // ends before the name
    bad("4003aabb"); // ends within the name
    bad("4001aa"); // ends before the value
    bad("8220"); // a size update behind a field
    bad("3fe21f"); // 4097 where 4096 is the most
  });

  test("size updates empty and bound the table", () => {
    const decoder = new HpackDecoder(4096, LIST_BYTES);
    decode(decoder, "400a637573746f6d2d6b65790d637573746f6d2d686561646572");
    assert.deepEqual(decode(decoder, "be"), ["custom-key: custom-header"]);
    assert.deepEqual(decode(decoder, "203fe11f82"), [":method: GET"]);
    assert.equal(decoder.tableBytes, 0);
    assert.throws(() => decode(decoder, "be"), HpackError);
    const small = new HpackDecoder(4096, LIST_BYTES);
    decode(small, "34"); // 20 bytes: no field fits
    decode(small, "400a637573746f6d2d6b65790d637573746f6d2d686561646572");
    assert.equal(small.tableBytes, 0);
  });

  test("a list beyond its bound is cut, and the table goes on", () => {
    const decoder = new HpackDecoder(4096, 100);
    const field = "400a637573746f6d2d6b65790d637573746f6d2d686561646572";
    assert.deepEqual(decode(decoder, `${field}be${"be".repeat(1000)}`).length, 1);
    assert.equal(decoder.truncated, true);
    assert.deepEqual(decode(decoder, "be"), ["custom-key: custom-header"]);
    assert.equal(decoder.truncated, false);
  });

  test("changes its version when indexes change their meaning", () => {
    const decoder = new HpackDecoder(4096, LIST_BYTES);
    const before = decoder.tableVersion;
    decode(decoder, "8286");
    decode(decoder, "0400");
    decode(decoder, "1400");
    assert.equal(decoder.tableVersion, before);
    decode(decoder, "440161");
    const after = decoder.tableVersion;
    assert.notEqual(after, before);
    decode(decoder, "3f00");
    assert.notEqual(decoder.tableVersion, after);
  });
});

test("names are sorted into kinds", () => {
  assert.equal(nameIdOf(":path"), NameId.Path);
  assert.equal(nameIdOf(":weird"), NameId.OtherPseudo);
  assert.equal(nameIdOf("x-own"), NameId.Other);
  for (const name of ["", "Upper", "sp ace", "co:lon", "\u0001", "\u00e9", "del\u007f"])
    assert.equal(nameIdOf(name), NameId.Malformed);
  assert.equal(STATIC_TABLE[31].nameId, NameId.ContentType);
});

test("encoder and decoder agree over random blocks and table sizes", () => {
  const seed = 7n;
  const random = new SeededRandom(seed);
  const names = [":path", "x-a", "x-b", "authorization", "grpc-timeout", "content-type"];
  const indexings = [Indexing.Add, Indexing.None, Indexing.Never];
  for (let connection = 0; connection < 200; connection++) {
    const encoder = new HpackEncoder(random.below(2) === 0 ? 4096 : random.below(300));
    const decoder = new HpackDecoder(4096, LIST_BYTES);
    for (let block = 0; block < 40; block++) {
      for (let i = random.below(3); i > 0; i--)
        encoder.limitTable(random.below(4) === 0 ? 8192 : random.below(400));
      const fields: EncodableField[] = Array.from({ length: random.below(8) }, () => ({
        name: names[random.below(names.length)],
        value: "v".repeat(random.below(random.below(10) === 0 ? 300 : 8)) + random.below(6),
        indexing: indexings[random.below(3)],
      }));
      const bytes = encoder.encode(fields);
      const decoded = decoder.decode(bytes, 0, bytes.length);
      assert.deepEqual(
        decoded.map(({ name, value }) => [name, value]),
        fields.map(({ name, value }) => [name, value]),
        `seed ${seed}, connection ${connection}, block ${block}`,
      );
    }
  }
});
