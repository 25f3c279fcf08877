import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLatin1, fromUtf8, quoteBytes, toUtf8 } from "@quorate/proto";
import { goJson, goUnquote, humanBytes } from "../src/go-format.ts";

test("bytes are quoted as Go's %q does", () => {
  const quoted: [Uint8Array, string][] = [
    [fromUtf8("plain é☃ 😀"), '"plain é☃ 😀"'],
    [fromUtf8('a"b\\c'), '"a\\"b\\\\c"'],
    [fromUtf8("\x07\b\f\n\r\t\v"), '"\\a\\b\\f\\n\\r\\t\\v"'],
    [fromUtf8("\x00\x01\x1f\x7f"), '"\\x00\\x01\\x1f\\x7f"'],
    [fromUtf8("\u0080\u00ad\u2028\ufeff\u{e0001}"), '"\\u0080\\u00ad\\u2028\\ufeff\\U000e0001"'],
    [fromUtf8("\ufffd"), '"\ufffd"'],
    [fromLatin1("\xff\xfe\x80a\xc3"), '"\\xff\\xfe\\x80a\\xc3"'],
    // Overlong, a surrogate, and beyond the last code point.
    [
      fromLatin1("\xc0\xaf\xe0\x80\x80\xed\xa0\x80\xf4\x90\x80\x80"),
      '"\\xc0\\xaf\\xe0\\x80\\x80\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80"',
    ],
  ];
  for (const [bytes, text] of quoted) assert.equal(quoteBytes(bytes), text);
});

test("Go's string literals are read back", () => {
  const read = (text: string): [string, number] | undefined => {
    const found = goUnquote(text);
    return found === undefined ? undefined : [toUtf8(found.bytes), found.length];
  };
  assert.deepEqual(read('"a\\"b" rest'), ['a"b', 6]);
  assert.deepEqual(read("`raw\\n`x"), ["raw\\n", 7]);
  assert.deepEqual(read('"\\x41\\101\\u2603\\U0001f600\\n"'), ["AA☃😀\n", 28]);
  assert.deepEqual(goUnquote('"\\xff"')?.bytes, Uint8Array.of(0xff));
  for (const bad of ["a", '"open', '"\\q"', '"\\ud800"', '"\\U00110000"', '"a\nb"', "`open", ""])
    assert.equal(goUnquote(bad), undefined, bad);
});

test("quoted bytes are read back unchanged", () => {
  // Every byte, alone and after a byte that opens a longer sequence.
  for (let byte = 0; byte < 256; byte++) {
    for (const bytes of [
      Uint8Array.of(byte),
      Uint8Array.of(0xe2, byte),
      Uint8Array.of(0xf0, 0x9f, byte, 0x80),
    ]) {
      assert.deepEqual(goUnquote(quoteBytes(bytes))?.bytes, bytes);
    }
  }
});

test("sizes are rounded to two digits", () => {
  const printed: [number, string][] = [
    [0, "0 B"],
    [9, "9 B"],
    [10, "10 B"],
    [999, "999 B"],
    [1000, "1.0 kB"],
    [20_480, "20 kB"],
    [9_949_999, "9.9 MB"],
    [9_950_000, "10 MB"],
    [2_147_483_648, "2.1 GB"],
    [8_589_934_592, "8.6 GB"],
  ];
  for (const [size, text] of printed) assert.equal(humanBytes(size), text);
});

test("JSON is Go's: big integers as digits, bytes in base64, angle brackets escaped", () => {
  assert.equal(
    goJson({
      id: 18_446_744_073_709_551_615n,
      bytes: Uint8Array.of(0xff, 0),
      none: undefined,
      list: [1, "a", true],
    }),
    '{"id":18446744073709551615,"bytes":"/wA=","list":[1,"a",true]}',
  );
  assert.equal(goJson("<a>&\u2028\ud800"), '"\\u003ca\\u003e\\u0026\\u2028\ufffd"');
  assert.equal(goJson(Buffer.from("view of more").subarray(0, 4)), '"dmlldw=="');
});
