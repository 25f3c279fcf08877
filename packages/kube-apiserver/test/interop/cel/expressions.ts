/**
 * Expressions that others wrote: those of cel-spec's conformance files and of the tests of
 * Kubernetes' libraries, read from Go's module cache; and some over a schema, for costs.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface CelCase {
  readonly expr: string;
  /** Of the variable "self". */
  readonly schema?: object;
  readonly self?: unknown;
}

/** Where the texts are, below Go's module cache. */
const CONFORMANCE = "cel.dev/expr@v0.25.1/tests/simple/testdata";
const LIBRARY = "k8s.io/apiserver@v0.36.3/pkg/cel/library";

/** Files about Protobuf's messages and other environments than Kubernetes'. */
const OTHERS: ReadonlySet<string> = new Set(
  (
    "block_ext encoders_ext enums math_ext network_ext proto2 proto2_ext proto3 type_deduction " +
    "unknowns wrappers dynamic"
  )
    .split(" ")
    .map((name) => `${name}.textproto`),
);

/** All expressions of conformance files whose tests need no variables and no messages. */
function conformance(modules: string): string[] {
  const folder = join(modules, CONFORMANCE);
  const expressions: string[] = [];
  for (const name of readdirSync(folder)) {
    if (!name.endsWith(".textproto") || OTHERS.has(name)) continue;
    for (const part of readFileSync(join(folder, name), "utf8")
      .split(/^ {2}test \{?/m)
      .slice(1)) {
      if (/^\s*(?:bindings|type_env|container|disable_check|disable_macros)\b/m.test(part))
        continue;
      const found = /^\s*expr:\s*((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\s)+)/m.exec(part);
      if (found !== null) expressions.push(textOf(found[1] as string));
    }
  }
  return expressions;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

/** One or more quoted texts of a text proto, as one. */
function textOf(quoted: string): string {
  const parts = quoted.match(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g) ?? [];
  const bytes = parts
    .map((part) => part.slice(1, -1))
    .join("")
    .replace(/\\(?:([0-7]{3})|x([0-9a-fA-F]{2})|(.))/g, (_all, octal, hex, char: string) => {
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
      if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
      return ESCAPES[char] ?? char;
    });
  return bytes;
}

/** The expressions in the tables of Kubernetes' tests. */
function libraries(modules: string): string[] {
  const folder = join(modules, LIBRARY);
  const expressions: string[] = [];
  for (const name of readdirSync(folder).filter((one) => one.endsWith("_test.go"))) {
    const text = readFileSync(join(folder, name), "utf8");
    for (const [, quoted, raw] of text.matchAll(/expr:\s*(?:"((?:[^"\\\n]|\\.)*)"|`([^`]*)`)/g))
      expressions.push(raw ?? (JSON.parse(`"${quoted}"`) as string));
  }
  return expressions.filter((one) => !/authorizer|\boptions\b|%/.test(one));
}

const text = (maxLength?: number) => ({ type: "string", ...(maxLength && { maxLength }) });
const SCHEMA = {
  type: "object",
  required: ["name"],
  properties: {
    name: text(63),
    free: text(),
    namespace: text(63),
    kind_of: { type: "string", enum: ["a", "bcd"] },
    count: { type: "integer" },
    ratio: { type: "number" },
    on: { type: "boolean" },
    at: { type: "string", format: "date-time" },
    span: { type: "string", format: "duration" },
    data: { type: "string", format: "byte" },
    any: { "x-kubernetes-int-or-string": true },
    "dash-ed": text(10),
    tags: { type: "array", maxItems: 5, items: text(10) },
    open: { type: "array", items: text() },
    numbers: { type: "array", items: { type: "integer" } },
    labels: { type: "object", additionalProperties: text(63), maxProperties: 4 },
    wide: { type: "object", additionalProperties: { type: "integer" } },
    rules: {
      type: "array",
      maxItems: 16,
      items: {
        type: "object",
        required: ["name"],
        properties: {
          name: text(20),
          port: { type: "integer" },
          paths: { type: "array", items: text(9) },
        },
      },
    },
  },
};
const SELF = {
  name: "web",
  free: "some text",
  namespace: "prod",
  kind_of: "a",
  count: 3,
  ratio: 0.5,
  on: true,
  at: "2026-01-02T03:04:05Z",
  span: "1h",
  data: "aGVsbG8=",
  any: "50%",
  "dash-ed": "x",
  tags: ["a", "b", "c"],
  open: ["x", "yy"],
  numbers: [3, 1, 2],
  labels: { app: "web", tier: "front" },
  wide: { a: 1, b: 2 },
  rules: [
    { name: "http", port: 80, paths: ["/a", "/b"] },
    { name: "https", port: 443 },
  ],
};

const OVER_SELF: readonly string[] = [
  "self.name == 'web'",
  "self.namespace != ''",
  "self.__namespace__ == 'prod'",
  "has(self.namespace)",
  "has(self.typo)",
  "has(self.rules[0].port)",
  "has(self.labels['app'].x)",
  "has(self.labels.app)",
  "self.labels['app'] == self.name",
  "'app' in self.labels",
  "self.name in self.tags",
  "self.name in ['a', 'web']",
  "self.dash__dash__ed.size() > 0",
  "self.tags.all(t, t.size() < 3)",
  "self.open.all(a, self.open.all(b, a == b))",
  "self.numbers.sum() > 3 && self.numbers.min() == 1",
  "self.numbers.isSorted()",
  "self.numbers.sort() == [1, 2, 3]",
  "self.tags.sortBy(t, t.size()).size() == 3",
  "self.rules.all(r, has(r.paths) ? r.paths.all(p, p.startsWith('/')) : true)",
  "self.rules.exists_one(r, r.port == 80)",
  "self.rules.map(r, r.name).join(',').contains('http')",
  "self.rules.filter(r, r.port > 100).size() == 1",
  "self.rules.all(a, self.rules.exists_one(b, a.name == b.name))",
  "self.labels.all(k, self.labels[k].matches('^[a-z]+$'))",
  "self.labels.all(k, v, k != v)",
  "self.labels.transformList(k, v, k + v).size() == 2",
  "self.wide.transformMap(k, v, v + 1).all(k, v, v > 1)",
  "self.rules.map(r, r.port).all(p, p > 0)",
  "self.free.matches('[a-z ]*') && self.free.split(' ').size() == 2",
  "self.free.replace('e', 'ee').lowerAscii().find('tee.t') == 'teext'",
  "self.at > timestamp('2026-01-01T00:00:00Z')",
  "self.at + self.span > self.at",
  "self.data == b'hello'",
  "type(self.any) == string && self.any.matches('^[0-9]+%$')",
  "self.any == 5 || self.any == '50%'",
  "self.any > 5",
  "self.count > 2 ? self.name : self.free",
  "(self.on ? self.rules[0] : self.rules[1]).name",
  "self.?missing.orValue('x')",
  "self.?name.orValue('x')",
  "self.rules[?5].hasValue()",
  "self.rules[0].?port.optMap(p, p + 1).orValue(0)",
  "cel.bind(n, self.name, n + n)",
  "string(self.count) + self.name",
  "format.dns1123Label().validate(self.name).hasValue()",
  "quantity(self.name).isLessThan(quantity('1'))",
  "isQuantity(self.name) || isURL(self.name) || isIP(self.name)",
  "url('https://a.b:80/c?d=e').getHost() == self.name",
  "ip('10.0.0.1').family() + self.count",
  "cidr('10.0.0.0/8').containsIP(self.name)",
  "sets.contains(self.tags, ['a'])",
  "sets.equivalent(self.tags, self.open)",
  "self.tags == ['a', 'b', 'c']",
  "self.tags + self.open == self.open",
  "dyn(self.name) == 'web'",
  "'%s %d'.format([self.name, self.count])",
  "self.name.frob()",
  "self.count == 'x'",
  "self.count + self.name",
  "foo(self)",
  "self.tags[10] == 'a'",
  "self.labels['none'] == 'a'",
  "1 / (self.count - 3) == 1",
  "self.name ==",
  "size(self) > 1",
];

/** Undefined where the module cache lacks them. @param modules such as "/root/go/pkg/mod" */
export function celCases(modules: string): CelCase[] | undefined {
  if (!existsSync(join(modules, CONFORMANCE)) || !existsSync(join(modules, LIBRARY)))
    return undefined;
  // Kubernetes' environment has Protobuf's messages, which no rule can be about.
  const plain = [...conformance(modules), ...libraries(modules)].filter(
    (expr) => !/google\.protobuf\.\w+\s*\{/.test(expr),
  );
  return [...[...new Set(plain)].map((expr) => ({ expr })), ...ownCases()];
}

/** Our own expressions, over a schema with all types. */
export function ownCases(): CelCase[] {
  return OVER_SELF.map((expr) => ({ expr, schema: SCHEMA, self: SELF }));
}
