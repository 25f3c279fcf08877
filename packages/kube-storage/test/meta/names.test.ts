/** Rules for names, and Go's way of printing texts. The texts are kube-apiserver's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { quoteText as goQuote } from "@quorate/proto";
import { goJson } from "../../src/meta/go-text.ts";
import {
  isConfigMapKey,
  isDns1035Label,
  isDns1123Label,
  isDns1123Subdomain,
  isLabelValue,
  isQualifiedName,
  nameIsDnsLabel,
  nameIsDnsSubdomain,
  nameIsPathSegment,
} from "../../src/meta/names.ts";

test("Labels, subdomains and values of labels", () => {
  for (const good of ["a", "a-b", "0", "a".repeat(63)]) {
    assert.deepEqual(isDns1123Label(good), [], good);
  }
  for (const bad of ["", "-a", "a-", "A", "a_b", "é"]) {
    assert.match(isDns1123Label(bad)[0], /^a lowercase RFC 1123 label must consist of/, bad);
  }
  assert.deepEqual(isDns1123Label("a.b"), ["must not contain dots"]);
  assert.deepEqual(isDns1123Label("a".repeat(64)), ["must be no more than 63 characters"]);
  assert.deepEqual(isDns1123Subdomain("a.b-c.0"), []);
  assert.equal(isDns1123Subdomain("a..b").length, 1);
  assert.deepEqual(isDns1123Subdomain(`${"a.".repeat(127)}a`), [
    "must be no more than 253 characters",
  ]);
  assert.deepEqual(isDns1035Label("a1"), []);
  assert.deepEqual(isDns1035Label("1a"), [
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an " +
      "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or " +
      "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
  ]);
  assert.deepEqual(isLabelValue(""), []);
  assert.deepEqual(isLabelValue("A_b.c-1"), []);
  assert.deepEqual(isLabelValue("a".repeat(64)), ["must be no more than 63 bytes"]);
  assert.match(isLabelValue("_")[0], /^a valid label must be an empty string or consist of/);
});

test("Qualified names have at most one prefix", () => {
  for (const good of ["a", "A.b_c", "example.org/Name", `${"a".repeat(253)}/${"b".repeat(63)}`]) {
    assert.deepEqual(isQualifiedName(good), [], good);
  }
  assert.match(
    isQualifiedName("a/b/c")[0],
    /^a valid label key must consist of .* with an optional DNS subdomain prefix and '\/' \(e.g. 'example.com\/MyName'\)$/,
  );
  assert.deepEqual(isQualifiedName("/a"), ["prefix part must be non-empty"]);
  assert.match(isQualifiedName("A_/a")[0], /^prefix part a lowercase RFC 1123 subdomain/);
  assert.deepEqual(isQualifiedName("a/")[0], "name part must be non-empty");
  assert.deepEqual(isQualifiedName("a".repeat(64)), ["name part must be no more than 63 bytes"]);
  assert.deepEqual(isQualifiedName(`${"a".repeat(254)}/b`), [
    "prefix part must be no more than 253 bytes",
  ]);
});

test("Keys of data", () => {
  assert.deepEqual(isConfigMapKey("a.B_c-1"), []);
  assert.deepEqual(isConfigMapKey("."), ["must not be '.'"]);
  assert.deepEqual(isConfigMapKey(".."), ["must not be '..'"]);
  assert.deepEqual(isConfigMapKey("..a"), ["must not start with '..'"]);
  assert.deepEqual(isConfigMapKey("a".repeat(254)), ["must be no more than 253 characters"]);
  assert.equal(isConfigMapKey("").length, 1);
});

test("A generateName may end with a dash", () => {
  assert.deepEqual(nameIsDnsSubdomain("a-", true), []);
  assert.equal(nameIsDnsSubdomain("a-", false).length, 1);
  assert.deepEqual(nameIsDnsLabel("ab-", true), []);
  assert.equal(nameIsDnsLabel("-", true).length, 1);
  assert.deepEqual(nameIsPathSegment("..", true), []);
  assert.deepEqual(nameIsPathSegment("a/b%", false), [
    "may not contain '/'",
    "may not contain '%'",
  ]);
});

test("Texts as Go prints them", () => {
  assert.equal(goQuote('a"b\\c'), '"a\\"b\\\\c"');
  assert.equal(goQuote("\x07\b\f\n\r\t\v\x00\x7f"), '"\\a\\b\\f\\n\\r\\t\\v\\x00\\x7f"');
  assert.equal(goQuote("é☃😀 '"), '"é☃😀 \'"');
  assert.equal(goQuote("\u200b\u{e0001}"), '"\\u200b\\U000e0001"');
  assert.equal(goJson({ b: "<&>", a: [1, null] }), '{"b":"\\u003c\\u0026\\u003e","a":[1,null]}');
  assert.equal(goJson(undefined), "null");
});
