/** Rules whose errors were recorded from kube-apiserver 1.36.3, in recorded-rules.json. */
import type { Json } from "@quorate/kube-storage";
import type { Anything } from "./cases.ts";

export interface RuleCase {
  readonly name: string;
  /** Of the field that has the rules. */
  readonly schema: Anything;
  /** Absent where the definition is refused. */
  readonly value?: Json;
  readonly old?: Json;
}

const rule = (text: string, more: Anything = {}): Anything => ({ rule: text, ...more });

const object = {
  type: "object",
  properties: {
    min: { type: "integer" },
    max: { type: "integer" },
    name: { type: "string", maxLength: 100 },
    "dash-ed": { type: "string", maxLength: 100 },
    tags: { type: "array", maxItems: 10, items: { type: "string", maxLength: 10 } },
    labels: {
      type: "object",
      maxProperties: 10,
      additionalProperties: { type: "string", maxLength: 10 },
    },
    any: { "x-kubernetes-int-or-string": true },
    at: { type: "string", format: "date-time" },
    nested: { type: "object", properties: { on: { type: "boolean" } } },
  },
};

const with_ = (...rules: Json[]): Anything => ({ ...object, "x-kubernetes-validations": rules });

export const ruleCases: readonly RuleCase[] = [
  { name: "holds", schema: with_(rule("self.min <= self.max")), value: { min: 1, max: 2 } },
  { name: "fails", schema: with_(rule("self.min <= self.max")), value: { min: 3, max: 2 } },
  {
    name: "message",
    schema: with_(rule("self.min <= self.max", { message: " too much " })),
    value: { min: 3, max: 2 },
  },
  {
    name: "message expression",
    schema: with_(rule("self.min <= self.max", { messageExpression: "'not for ' + self.name" })),
    value: { min: 3, max: 2, name: "n" },
  },
  {
    name: "message expression that fails",
    schema: with_(
      rule("self.min <= self.max", { messageExpression: "self.name", message: "plain" }),
    ),
    value: { min: 3, max: 2 },
  },
  {
    name: "format",
    schema: with_(
      rule("self.min <= self.max", { messageExpression: "'%s: %d'.format([self.name, self.min])" }),
    ),
    value: { min: 3, max: 2, name: "n" },
  },
  {
    name: "reason and path",
    schema: with_(
      rule("self.min <= self.max", { reason: "FieldValueForbidden", fieldPath: ".max" }),
    ),
    value: { min: 3, max: 2 },
  },
  {
    name: "required reason",
    schema: with_(rule("has(self.name)", { reason: "FieldValueRequired", fieldPath: ".name" })),
    value: {},
  },
  {
    name: "duplicate reason",
    schema: with_(rule("false", { reason: "FieldValueDuplicate" })),
    value: {},
  },
  { name: "missing key", schema: with_(rule("self.name == 'a'")), value: {} },
  { name: "index out of bounds", schema: with_(rule("self.tags[3] == 'a'")), value: { tags: [] } },
  { name: "division by zero", schema: with_(rule("1 / self.min == 1")), value: { min: 0 } },
  {
    name: "scalar",
    schema: { type: "integer", "x-kubernetes-validations": [rule("self > 5")] },
    value: 4,
  },
  {
    name: "text",
    schema: {
      type: "string",
      maxLength: 20,
      "x-kubernetes-validations": [rule("self.startsWith('a')")],
    },
    value: "b",
  },
  {
    name: "list",
    schema: {
      type: "array",
      maxItems: 10,
      items: { type: "integer" },
      "x-kubernetes-validations": [
        rule("self.all(x, x > 1)"),
        rule("self.exists(x, x == 2)"),
        rule("self.sum() > 100"),
      ],
    },
    value: [1, 2],
  },
  {
    name: "map",
    schema: {
      type: "object",
      maxProperties: 10,
      additionalProperties: { type: "integer" },
      "x-kubernetes-validations": [
        rule("self.all(k, self[k] > 1)"),
        rule("'a' in self"),
        rule("size(self) == 5"),
      ],
    },
    value: { a: 1 },
  },
  { name: "dashes", schema: with_(rule("self.dash__dash__ed == 'x'")), value: { "dash-ed": "y" } },
  {
    name: "int or string",
    schema: with_(rule("type(self.any) == int ? self.any > 5 : self.any == 'x'")),
    value: { any: 3 },
  },
  {
    name: "int or string of the other type",
    schema: with_(rule("self.any > 5")),
    value: { any: "x" },
  },
  {
    name: "times",
    schema: with_(rule("self.at > timestamp('2026-01-01T00:00:00Z')")),
    value: { at: "2025-01-01T00:00:00Z" },
  },
  {
    name: "regular expressions",
    schema: with_(rule("self.name.matches('^[a-c]+$')"), rule("self.name.find('b+') == 'bb'")),
    value: { name: "abd" },
  },
  {
    name: "quantities",
    schema: with_(rule("quantity(self.name).isLessThan(quantity('1Gi'))")),
    value: { name: "2Gi" },
  },
  {
    name: "urls",
    schema: with_(rule("isURL(self.name) && url(self.name).getScheme() == 'https'")),
    value: { name: "http://a" },
  },
  {
    name: "addresses",
    schema: with_(rule("cidr('10.0.0.0/8').containsIP(self.name)")),
    value: { name: "11.0.0.1" },
  },
  {
    name: "named formats",
    schema: with_(rule("!format.dns1123Label().validate(self.name).hasValue()")),
    value: { name: "A" },
  },
  { name: "optional fields", schema: with_(rule("self.?nested.?on.orValue(false)")), value: {} },
  {
    name: "equal objects",
    schema: with_(rule("self.nested == {'on': true}")),
    value: { nested: { on: true } },
  },
  {
    name: "transition",
    schema: with_(rule("self.min >= oldSelf.min")),
    old: { min: 3 },
    value: { min: 2 },
  },
  {
    name: "transition of a new object",
    schema: with_(rule("self.min >= oldSelf.min")),
    value: { min: 2 },
  },
  {
    name: "immutable",
    schema: {
      type: "string",
      maxLength: 9,
      "x-kubernetes-validations": [rule("self == oldSelf", { message: "is immutable" })],
    },
    old: "a",
    value: "b",
  },
  {
    name: "optional oldSelf",
    schema: with_(rule("oldSelf.hasValue() || self.min > 5", { optionalOldSelf: true })),
    value: { min: 1 },
  },
  {
    name: "optional oldSelf, update",
    schema: with_(
      rule("!oldSelf.hasValue() || self.min > oldSelf.value().min", { optionalOldSelf: true }),
    ),
    old: { min: 7 },
    value: { min: 1 },
  },
  { name: "not checked", schema: with_(rule("self.min > 5")), value: { min: "x" } },
  { name: "undeclared", schema: with_(rule("foo == 1")) },
  { name: "undefined field", schema: with_(rule("self.foo == 1")) },
  { name: "wrong types", schema: with_(rule("self.min == 'x'")) },
  { name: "wrong types in a sum", schema: with_(rule("self.min + self.name == 'x'")) },
  { name: "syntax", schema: with_(rule("self.min ==")) },
  { name: "unknown function", schema: with_(rule("self.name.frob()")) },
  { name: "equal lists", schema: with_(rule("self.tags == ['a']")), value: { tags: ["b"] } },
  { name: "no bool", schema: with_(rule("self.min")) },
  { name: "message is no text", schema: with_(rule("true", { messageExpression: "self.min" })) },
  {
    name: "oldSelf of a list",
    schema: {
      type: "array",
      maxItems: 5,
      items: {
        type: "string",
        maxLength: 9,
        "x-kubernetes-validations": [rule("self == oldSelf")],
      },
    },
  },
  { name: "oldSelf is not used", schema: with_(rule("true", { optionalOldSelf: true })) },
];
