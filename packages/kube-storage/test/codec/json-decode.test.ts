/** Reading clients' objects: Go's errors, strictness, null and defaults. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { kindSource } from "../../src/codec/builtin-kind.ts";
import { parseJson } from "../../src/codec/json-parser.ts";
import { MAX_MESSAGE_DEPTH, MAX_READ_WORK, MAX_STRICT_ERRORS } from "../../src/codec/limits.ts";

const configMaps = kindSource("", "v1", "ConfigMap");
const secrets = kindSource("", "v1", "Secret");
const events = kindSource("", "v1", "Event");
const definitions = kindSource("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
const webhooks = kindSource("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");

describe("values of the wrong type", () => {
  // As Kubernetes 1.36 writes them, after "X in version "v1" cannot be handled as a X: ".
  const cases: readonly (readonly [kind: typeof configMaps, text: string, error: string])[] = [
    [
      configMaps,
      '{"data":{"a":1}}',
      "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
    ],
    [
      configMaps,
      '{"data":["a"]}',
      "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
    ],
    [
      configMaps,
      '{"metadata":{"labels":"x"}}',
      "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string",
    ],
    [
      configMaps,
      '{"metadata":"x"}',
      "json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
    ],
    [
      configMaps,
      '{"metadata":{"uid":true}}',
      "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.uid of type types.UID",
    ],
    [configMaps, '{"binaryData":{"a":"?"}}', "illegal base64 data at input byte 0"],
    [
      events,
      '{"count":1.5}',
      "json: cannot unmarshal number 1.5 into Go struct field Event.count of type int32",
    ],
    [
      events,
      '{"count":2147483648}',
      "json: cannot unmarshal number 2147483648 into Go struct field Event.count of type int32",
    ],
    [
      events,
      '{"firstTimestamp":"yesterday"}',
      'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
    ],
    [
      events,
      '{"eventTime":"2026-01-01T00:00:00Z"}',
      'parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
    ],
    [
      definitions,
      '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{"a":{"type":1}}}}}]}}',
      "json: cannot unmarshal number into Go struct field JSONSchemaProps." +
        "spec.versions.schema.openAPIV3Schema.properties.type of type string",
    ],
    [
      webhooks,
      '{"webhooks":[{"rules":[{"resources":"pods"}]}]}',
      "json: cannot unmarshal string into Go struct field RuleWithOperations.webhooks.rules.Rule.resources of type []string",
    ],
  ];
  for (const [source, text, error] of cases)
    it(`${source.kind.kind} ${text}`, () => {
      const { kind } = source.kind;
      assert.throws(() => source.decode(parseJson(text)), {
        code: "BadRequest",
        message: `${kind} in version "v1" cannot be handled as a ${kind}: ${error}`,
      });
    });
});

describe("strict errors", () => {
  it("name unknown and duplicate fields in the order of the text", () => {
    const text =
      '{"unknown":1,"metadata":{"Name":"x","name":"a","name":"b"},"data":{"k":"1","k":"2"},' +
      '"unknown":2,"__proto__":{}}';
    const { object, strictErrors } = configMaps.decode(parseJson(text));
    assert.deepEqual(strictErrors, [
      'unknown field "unknown"',
      'unknown field "metadata.Name"',
      'duplicate field "metadata.name"',
      'duplicate field "data.k"',
      'unknown field "__proto__"',
    ]);
    assert.equal(object.metadata.name, "b");
    assert.deepEqual(object["data"], { k: "2" });
  });

  it("name the place in lists", () => {
    const value = { webhooks: [{}, { rules: [{ unknown: 1 }] }] };
    assert.deepEqual(webhooks.decode(value).strictErrors, [
      'unknown field "webhooks[1].rules[0].unknown"',
    ]);
  });

  it("are bounded", () => {
    const fields = Array.from({ length: MAX_STRICT_ERRORS + 1 }, (_, at) => [`f${at}`, 1]);
    const { strictErrors } = configMaps.decode(Object.fromEntries(fields));
    assert.equal(strictErrors.length, MAX_STRICT_ERRORS);
  });
});

describe("nesting", () => {
  const nested = (depth: number): object =>
    depth === 0 ? {} : { properties: { a: nested(depth - 1) } };
  const definition = (depth: number): object => ({
    spec: { versions: [{ schema: { openAPIV3Schema: nested(depth) } }] },
  });

  it("is bounded", () => {
    assert.throws(() => definitions.decode(definition(MAX_MESSAGE_DEPTH)), /exceeded max depth/);
  });

  it("that is accepted can be stored and read again", () => {
    const { object } = definitions.decode(definition(MAX_MESSAGE_DEPTH - 6));
    assert.deepEqual(definitions.protobuf.decode(definitions.protobuf.encode(object)), object);
  });

  it("that no client sent is refused when it is written", () => {
    const object = definition(MAX_MESSAGE_DEPTH + 10) as never;
    assert.throws(() => definitions.protobuf.encode(object), TypeError);
  });
});

describe("null and defaults", () => {
  it("null is the zero value, which Go may write as null", () => {
    const value = { metadata: null, data: null, rules: null, immutable: null };
    assert.deepEqual(configMaps.decode(value).object, {
      kind: "ConfigMap",
      apiVersion: "v1",
      metadata: {},
    });
    const role = kindSource("rbac.authorization.k8s.io", "v1", "Role").decode({}).object;
    assert.deepEqual(role["rules"], null);
  });

  it("a secret's stringData replaces entries of data", () => {
    const { object } = secrets.decode({ data: { a: "YQ==", b: "Yg==" }, stringData: { b: "x" } });
    assert.deepEqual(object["data"], { a: "YQ==", b: "eA==" });
    assert.equal(object["stringData"], undefined);
    assert.equal(object["type"], "Opaque");
  });

  it("a namespace has its name as a label", () => {
    const { object } = kindSource("", "v1", "Namespace").decode({ metadata: { name: "n" } });
    assert.deepEqual(object.metadata.labels, { "kubernetes.io/metadata.name": "n" });
    assert.deepEqual(object["status"], { phase: "Active" });
  });

  it("a definition gets its names, conversion and stored version", () => {
    const { object } = definitions.decode({
      spec: { names: { kind: "Widget" }, versions: [{ name: "v1", storage: true }] },
    });
    const { names, conversion } = object["spec"] as Record<string, unknown>;
    assert.deepEqual(names, {
      plural: "",
      singular: "widget",
      kind: "Widget",
      listKind: "WidgetList",
    });
    assert.deepEqual(conversion, { strategy: "None" });
    assert.deepEqual((object["status"] as Record<string, unknown>)["storedVersions"], ["v1"]);
  });

  it("webhooks and role bindings get theirs", () => {
    const { object } = webhooks.decode({
      webhooks: [{ rules: [{}], clientConfig: { service: {} } }],
    });
    const [webhook] = object["webhooks"] as Record<string, unknown>[];
    assert.equal(webhook["failurePolicy"], "Fail");
    assert.equal(webhook["timeoutSeconds"], 10);
    assert.deepEqual(webhook["rules"], [{ scope: "*" }]);
    assert.deepEqual(webhook["clientConfig"], { service: { namespace: "", name: "", port: 443 } });
    const binding = kindSource("rbac.authorization.k8s.io", "v1", "RoleBinding").decode({
      subjects: [
        { kind: "User", name: "u" },
        { kind: "ServiceAccount", name: "s" },
      ],
    }).object;
    const group = "rbac.authorization.k8s.io";
    assert.deepEqual(binding["subjects"], [
      { kind: "User", apiGroup: group, name: "u" },
      { kind: "ServiceAccount", name: "s" },
    ]);
    assert.deepEqual(binding["roleRef"], { apiGroup: group, kind: "", name: "" });
  });
});

describe("the work of reading a message", () => {
  it("is bounded", () => {
    // ConfigMap { metadata { finalizers "x", ... } }
    const texts = new Uint8Array(3 * Math.ceil(MAX_READ_WORK / 5)).map(
      (_, at) => [0x72, 1, 120][at % 3],
    );
    const length = [
      (texts.length & 127) | 128,
      ((texts.length >> 7) & 127) | 128,
      ((texts.length >> 14) & 127) | 128,
      texts.length >> 21,
    ];
    const message = new Uint8Array([0x0a, ...length]);
    const bytes = new Uint8Array(message.length + texts.length);
    bytes.set(message);
    bytes.set(texts, message.length);
    assert.throws(() => configMaps.protobuf.decode(bytes), /too many fields/);
  });
});

describe("stored bytes that are no object", () => {
  const cases: readonly (readonly [string, Uint8Array])[] = [
    ["nothing", new Uint8Array(0)],
    ["no JSON", Uint8Array.of(1, 2, 3)],
    ["JSON of the wrong type", new Uint8Array(Buffer.from('{"data":1}'))],
    ["an envelope of nothing", new Uint8Array(Buffer.from("k8s\0"))],
    [
      "a truncated message",
      new Uint8Array(Buffer.from("k8s\0\u0012\u0003\u000a\u0009\u0001", "latin1")),
    ],
  ];
  for (const [name, bytes] of cases)
    it(`${name}: TypeError`, () => {
      assert.throws(() => configMaps.codec.decode(bytes), TypeError);
    });
});
