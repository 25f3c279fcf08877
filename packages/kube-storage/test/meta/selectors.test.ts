/** Label and field selectors. The texts of errors are kube-apiserver's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldEquals, parseFieldSelector } from "../../src/meta/field-selector.ts";
import { SelectorSyntaxError } from "../../src/meta/label-requirement.ts";
import { parseLabelSelector } from "../../src/meta/label-selector.ts";
import {
  type LabelSelectorObject,
  selectorOfObject,
  validateLabelSelector,
} from "../../src/meta/label-selector-object.ts";
import type { Selector } from "../../src/meta/selectors.ts";

function problem(parse: (text: string) => Selector, text: string): string {
  try {
    parse(text);
  } catch (error) {
    assert.ok(error instanceof SelectorSyntaxError, String(error));
    return error.message;
  }
  return "";
}

test("Label selectors match", () => {
  const labels = { app: "web", tier: "front", size: "5", empty: "" };
  for (const [text, expected] of [
    ["", true],
    ["app", true],
    ["!app", false],
    ["!none", true],
    ["app=web", true],
    ["app==web,tier=front", true],
    ["app!=web", false],
    ["none!=web", true],
    ["app in (web,db)", true],
    ["app in (db)", false],
    ["app notin (db)", true],
    ["none notin (db)", true],
    ["none in (db)", false],
    ["size>4", true],
    ["size>5", false],
    ["size<6", true],
    ["app>4", false],
    ["none<6", false],
    ["empty=", true],
    ["empty in ()", true],
    ["empty in (,a)", true],
    ["in in (in)", false],
    ["notin", false],
    [" app  in\t( web , db ) , tier ", true],
  ] as const) {
    assert.equal(parseLabelSelector(text).matches(labels), expected, text);
  }
  assert.equal(parseLabelSelector("toString").matches(labels), false, "own labels only");
});

test("Label selectors have a canonical text", () => {
  for (const [text, canonical] of [
    ["b=1,a", "a,b=1"],
    ["x in (c,a,,b)", "x in (,a,b,c)"],
    ["x notin (b)", "x notin (b)"],
    ["!x , y!=z", "!x,y!=z"],
    ["x==1", "x==1"],
    ["n>1,m<2", "m<2,n>1"],
  ]) {
    assert.equal(String(parseLabelSelector(text)), canonical);
  }
  assert.equal(parseLabelSelector("").isEmpty, true);
  assert.equal(parseLabelSelector("a=1,b in (2),c in (3,4)").exactValue("b"), "2");
  assert.equal(parseLabelSelector("c in (3,4)").exactValue("c"), undefined);
  assert.equal(parseLabelSelector("c!=3").exactValue("c"), undefined);
});

test("Label selectors that cannot be parsed", () => {
  const requirement = "unable to parse requirement: ";
  for (const [text, message] of [
    ["a b", `${requirement}found 'b', expected: in, notin, =, ==, !=, gt, lt`],
    ["a in (b", `${requirement}found '', expected: ',' or ')'`],
    ["a in b", `${requirement}found 'b' expected: '('`],
    ["a===b", `${requirement}found '=', expected: identifier`],
    ["a=b c", "found 'c', expected: ',' or 'end of string'"],
    [",a", "found ',', expected: !, identifier, or 'end of string'"],
    ["a,", "found '', expected: identifier after ','"],
    ["/a", `${requirement}<nil>: Invalid value: "/a": prefix part must be non-empty`],
    ["!", `${requirement}found '', expected: identifier`],
    [
      "a>x",
      `${requirement}values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be ` +
        "an integer",
    ],
  ]) {
    assert.equal(problem(parseLabelSelector, text), message, text);
  }
  assert.match(
    problem(parseLabelSelector, "a=_"),
    /^unable to parse requirement: values\[0\]\[a\]: Invalid value: "_": a valid label must be/,
  );
});

test("Label selectors as objects", () => {
  const object: LabelSelectorObject = {
    matchLabels: { app: "web" },
    matchExpressions: [
      { key: "tier", operator: "NotIn", values: ["db", "cache"] },
      { key: "old", operator: "DoesNotExist" },
    ],
  };
  const selector = selectorOfObject(object);
  assert.equal(String(selector), "app=web,!old,tier notin (cache,db)");
  assert.equal(selector.matches({ app: "web", tier: "front" }), true);
  assert.equal(selectorOfObject(undefined).matches({}), false, "none selects nothing");
  assert.equal(selectorOfObject({}).matches({}), true, "an empty one selects everything");
  const bad = { matchExpressions: [{ key: "a b", operator: "Foo", values: ["_"] }] };
  assert.equal(
    problem(() => selectorOfObject(bad), ""),
    '"Foo" is not a valid label selector operator',
  );
  const fields = validateLabelSelector(
    {
      matchExpressions: [
        ...bad.matchExpressions,
        { key: "a", operator: "In" },
        { key: "a", operator: "Exists", values: ["x"] },
      ],
    },
    "spec.selector",
  ).map(({ field, message }) => `${field}: ${message.slice(0, 40)}`);
  assert.deepEqual(fields, [
    'spec.selector.matchExpressions[0].operator: Invalid value: "Foo": not a valid select',
    'spec.selector.matchExpressions[0].key: Invalid value: "a b": name part must con',
    'spec.selector.matchExpressions[0].values[0]: Invalid value: "_": a valid label must b',
    "spec.selector.matchExpressions[1].values: Required value: must be specified when `",
    "spec.selector.matchExpressions[2].values: Forbidden: may not be specified when `op",
  ]);
});

test("Field selectors", () => {
  const fields = { "metadata.name": "a,b", "status.phase": "Running" };
  const selector = parseFieldSelector("status.phase!=Done,metadata.name=a\\,b,");
  assert.equal(selector.matches(fields), true);
  assert.equal(String(selector), "metadata.name=a\\,b,status.phase!=Done");
  assert.deepEqual(selector.attributes, ["metadata.name", "status.phase"]);
  assert.equal(selector.exactValue("metadata.name"), "a,b");
  assert.equal(selector.exactValue("status.phase"), undefined);
  assert.equal(parseFieldSelector("x==").matches({}), true, "an absent field is empty");
  assert.equal(parseFieldSelector("x!=").matches({}), false);
  assert.equal(parseFieldSelector("").isEmpty, true);
  assert.equal(fieldEquals("x", "a=b").toString(), "x=a\\=b");
  for (const [text, message] of [
    ["foo", "invalid selector: 'foo'; can't understand 'foo'"],
    ["x=a\\x", "invalid field selector: invalid escape sequence: \\x"],
    ["x=a\\", "invalid field selector: invalid escape sequence: \\"],
    ["x=a=b", "invalid field selector: unescaped character in value: 61"],
  ]) {
    assert.equal(problem(parseFieldSelector, text), message);
  }
});
