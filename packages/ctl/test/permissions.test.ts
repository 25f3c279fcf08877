/** The verdict of `auth can-i` against a naive model, and the warnings of grants. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { prefixEnd } from "@quorate/client";
import { authpb, fromLatin1 } from "@quorate/proto";
import fc from "fast-check";
import { rangeText } from "../src/permissions/range-text.ts";
import { judgeNeed, keyRange, type Need, type RoleGrants } from "../src/permissions/verdict.ts";
import { widthWarnings } from "../src/permissions/wide-grant.ts";

const { READ, WRITE, READWRITE } = authpb.Permission_Type;

function grants(role: string, ...list: (readonly [number, string, string])[]): RoleGrants {
  const permissions = list.map(([permType, key, end]) => ({
    permType,
    key: fromLatin1(key),
    rangeEnd: fromLatin1(end),
  }));
  return { role, permissions };
}

function need(access: Need["access"], key: string, end = ""): Need {
  return { access, ...keyRange(fromLatin1(key), fromLatin1(end)) };
}

describe("verdict", () => {
  test("the permissions of several roles make one range, and a gap between them is named", () => {
    const both = judgeNeed(need("READ", "a", "z"), [
      grants("one", [READ, "a", "m"]),
      grants("two", [READWRITE, "k", "zz"]),
    ]);
    assert.deepEqual(
      both.by.map(({ role }) => role),
      ["one", "two"],
    );
    assert.equal(both.allowed, true);
    const apart = judgeNeed(need("READ", "a", "z"), [
      grants("one", [READ, "a", "m"], [WRITE, "m", "n"]),
      grants("two", [READWRITE, "n", "\0"]),
    ]);
    assert.deepEqual([apart.allowed, apart.missing], [false, [{ key: "m", end: "n" }]]);
    assert.deepEqual(
      apart.others.map(({ type }) => type),
      ["WRITE"],
    );
  });

  test("an open end is covered by an open end alone", () => {
    assert.equal(
      judgeNeed(need("READ", "b", "\0"), [grants("r", [READ, "a", "z"])]).allowed,
      false,
    );
    assert.equal(
      judgeNeed(need("READ", "b", "\0"), [grants("r", [READ, "a", "\0"])]).allowed,
      true,
    );
  });

  test("it is a naive model's: every key of the range has a permission of its own", () => {
    const letters = fc.constantFrom(..."abcdef");
    const permission = fc.tuple(fc.constantFrom(READ, WRITE, READWRITE), letters, letters);
    const wanted = fc.tuple(fc.constantFrom("READ" as const, "WRITE" as const), letters, letters);
    fc.assert(
      fc.property(fc.array(permission, { maxLength: 8 }), wanted, (list, [access, key, end]) => {
        const sane = list.filter(([, from, to]) => from < to);
        const verdict = judgeNeed(need(access, key, end), [grants("r", ...sane)]);
        const type = access === "READ" ? READ : WRITE;
        const naive = [..."abcdef"]
          .filter((one) => one >= key && one < end)
          .every((one) =>
            sane.some(
              ([kind, from, to]) =>
                (kind === type || kind === READWRITE) && from <= one && one < to,
            ),
          );
        assert.equal(verdict.allowed, naive);
        assert.equal(verdict.missing.length === 0, verdict.allowed);
      }),
    );
  });
});

describe("grants that are wider than they look", () => {
  const warnings = (key: string, end: string): string[] =>
    widthWarnings({ key: fromLatin1(key), rangeEnd: fromLatin1(end) }, prefixEnd);

  test("are named", () => {
    assert.match(warnings("\0", "\0").join(), /^the grant covers every key, those of other app/);
    assert.match(warnings("app", "\0").join(), /open end: it covers every key from "app" on/);
    assert.match(warnings("\xff", "\0").join(), /open end/);
    assert.match(warnings("app", "apq").join(), /with prefix "app": "app2" is one of them/);
    assert.match(warnings("app/", "b").join(), /not only those that begin with "app\/": "app0" is/);
    assert.match(warnings("a", "c").join(), /all keys in \["a", "c"\), .*: "b" is one of them$/);
  });

  test("others are not", () => {
    assert.deepEqual(warnings("key", ""), []);
    assert.deepEqual(warnings("app/", "app0"), []);
    assert.deepEqual(warnings("app/", "app/m"), []);
  });

  test("ranges are shown as they are", () => {
    const text = (key: string, end: string): string =>
      rangeText(keyRange(fromLatin1(key), fromLatin1(end)), prefixEnd);
    assert.equal(text("k", ""), '"k"');
    assert.equal(text("a", "c"), '["a", "c")');
    assert.equal(text("p/", "p0"), 'every key with prefix "p/"');
    assert.equal(text("z", "\0"), 'every key from "z" on');
    assert.equal(text("\0", "\0"), "every key");
  });
});
