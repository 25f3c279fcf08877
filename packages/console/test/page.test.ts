/** The page's modules that need no browser: differences, views of values, permissions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";

const page = (name: string) => import(new URL(`../page/${name}`, import.meta.url).href);
const { lineDiff } = await page("diff.js");
const { indentedJson, protobufText, viewsOf } = await page("values.js");
const { verdict } = await page("permissions.js");
const { endOf } = await page("api.js");

test("a difference has both texts, and keeps what is common", () => {
  const random = new SeededRandom(7n);
  const made = () =>
    Array.from({ length: random.below(12) }, () => "abc"[random.below(3)]).join("\n");
  const side = (lines: readonly (readonly [string, string])[], kind: string) =>
    lines.filter(([one]) => one === " " || one === kind).map(([, line]) => line);
  for (let i = 0; i < 500; i++) {
    const [before, after] = [made(), made()];
    const lines = lineDiff(before, after);
    assert.equal(side(lines, "-").join("\n"), before);
    assert.equal(side(lines, "+").join("\n"), after);
  }
  assert.deepEqual(lineDiff("a\nb\nc", "a\nx\nc"), [
    [" ", "a"],
    ["-", "b"],
    ["+", "x"],
    [" ", "c"],
  ]);
  const long = Array.from({ length: 3000 }, (_, i) => `${i}`).join("\n");
  assert.equal(lineDiff(long, long.replaceAll("1", "x")).length > 3000, true);
});

test("JSON keeps its tokens, and other texts are none", () => {
  const text = '{"a":[1,{"b":"x, {y}\\"\\u202e"}],"n":12345678901234567890,"e":{},"l":[]}';
  const shown = indentedJson(text);
  assert.match(shown, /"n": 12345678901234567890/);
  assert.match(shown, /"b": "x, \{y\}\\"\\u202e"/);
  assert.match(shown, /"e": \{\}/);
  assert.deepEqual(JSON.parse(shown), JSON.parse(text));
  for (const none of ["", "1", '"a"', "{", "[1,]", "{a:1}"])
    assert.equal(indentedJson(none), undefined, none);
});

test("protobuf is shown by its fields; what is none is not", () => {
  assert.equal(
    protobufText("\x08\x96\x01\x12\x02hi\x1a\x02\x08\x01"),
    '1: 150\n2: "hi"\n3: {\n  1: 1\n}',
  );
  assert.equal(protobufText("\x09\x01\0\0\0\0\0\0\x80"), "1: 0x8000000000000001");
  for (const none of ["", "\x08", "\x12\x05ab", "\x00\x00", "\x0b", "\x08\xff"])
    assert.equal(protobufText(none), undefined, JSON.stringify(none));
  let nested = "\x08\x01";
  for (let i = 0; i < 40; i++) nested = `\x1a${String.fromCharCode(nested.length)}${nested}`;
  assert.ok(protobufText(nested).includes("0x"), "it is cut somewhere");
});

test("the best view comes first, and none throws", () => {
  const names = (value: string) => viewsOf(value).map(([name]: [string]) => name);
  assert.equal(names('{"a":1}')[0], "JSON");
  assert.equal(names("plain")[0], "Text");
  assert.deepEqual(names("\xff\xfe"), ["Hex"]);
  assert.deepEqual(names(""), ["Text", "Hex"]);
  const random = new SeededRandom(9n);
  for (let i = 0; i < 300; i++) {
    const length = random.below(40);
    const value = Array.from({ length }, () => String.fromCharCode(random.below(256))).join("");
    assert.equal(names(value).at(-1), "Hex");
  }
});

test("a verdict is that of the keys one by one", () => {
  const random = new SeededRandom(11n);
  const letters = ["a", "b", "c", "d"];
  const letter = () => letters[random.below(letters.length)]!;
  const range = (): [string, string] => {
    const kind = random.below(4);
    const [low, high] = [letter(), letter()].sort() as [string, string];
    if (kind === 0) return [low, ""];
    if (kind === 1) return [low, "\0"];
    if (kind === 2 && random.below(3) === 0) return ["\0", "\0"];
    return low === high ? [low, ""] : [low, high];
  };
  const has = ([key, end]: [string, string], one: string) =>
    end === "" ? one === key : (key === "\0" || one >= key) && (end === "\0" || one < end);
  // Between two of them nothing begins or ends.
  const places = ["", ...letters.flatMap((one) => [one, `${one}\0`])];
  let allowed = 0;
  for (let i = 0; i < 2000; i++) {
    const grants = Array.from({ length: random.below(4) }, () => ({
      range: range(),
      type: ["READ", "WRITE", "READWRITE"][random.below(3)]!,
    }));
    const permissions = grants.map(({ type, range: [key, end] }) => ({ type, key, end }));
    const wanted = range();
    const expected = places
      .filter((one) => has(wanted, one))
      .every((one) => grants.some((grant) => grant.type !== "WRITE" && has(grant.range, one)));
    const { isAllowed } = verdict([{ role: "r", permissions }], "READ", ...wanted);
    assert.equal(isAllowed, expected, JSON.stringify({ permissions, wanted }));
    if (isAllowed) allowed++;
  }
  assert.ok(allowed > 100 && allowed < 1900, String(allowed));
  assert.ok(verdict([{ role: "root", permissions: [] }], "WRITE", "x", "").isAllowed);
});

test("the end of a prefix", () => {
  assert.deepEqual(["a", "a/", "a\xff", "\xff\xff", ""].map(endOf), ["b", "a0", "b", "\0", "\0"]);
});
