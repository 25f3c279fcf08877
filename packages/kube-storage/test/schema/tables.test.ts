/** The tables of built-in types, and the schemas that derive from them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { builtinKind, kindSource } from "../../src/codec/builtin-kind.ts";
import { describedNames } from "../../src/schema/descriptions.ts";
import { allTypes, messageType, type ValueType } from "../../src/schema/message-type.ts";
import { parseType, parseTypeExpression } from "../../src/schema/table-parser.ts";

function innermost(type: ValueType): ValueType {
  return type.of === undefined ? type : innermost(type.of);
}

describe("the tables", () => {
  it("refer only to types that exist", () => {
    let fields = 0;
    for (const type of allTypes())
      for (const field of type.fields) {
        fields++;
        const inner = innermost(field.type);
        if (inner.shape === "message") assert.ok(inner.message().definition, field.name);
      }
    assert.ok(fields > 1500, `${fields} fields`);
  });

  it("name each field and each number of a type once", () => {
    for (const type of allTypes()) {
      assert.equal(type.slotOf.size, type.fields.length, type.fullName);
      assert.equal(type.wireByNumber.size, type.wire.length, type.fullName);
    }
  });

  it("have nothing described that does not exist", () => {
    for (const name of describedNames()) {
      const [home, type, field] = name.split(".");
      const found = messageType(`${home}.${type}`);
      assert.ok(found !== undefined, name);
      if (field !== undefined) assert.ok(found.slotOf.has(field), name);
    }
  });

  it("are refused where they break their format", () => {
    for (const text of ["A\n  b:string", "A\n  b=x:string", "A\n  b=1:[string", "A = "])
      assert.throws(() => parseType(text), SyntaxError, text);
    for (const text of ["", "[a", "[a]b", "{a"])
      assert.throws(() => parseTypeExpression(text), SyntaxError, text);
  });

  it("say what is no built-in kind", () => {
    assert.equal(builtinKind({ group: "", version: "v2", kind: "ConfigMap" }), undefined);
    assert.equal(builtinKind({ group: "", version: "v1", kind: "ObjectMeta" }), undefined);
    assert.equal(builtinKind({ group: "a/b", version: "v1", kind: "__proto__" }), undefined);
    assert.throws(() => kindSource("", "v1", "Nothing"), RangeError);
  });
});

describe("schemas of built-in kinds", () => {
  it("have what patches and server-side apply need", () => {
    const { schema } = kindSource("", "v1", "Namespace").schema;
    const { ownerReferences, finalizers } = schema.properties!["metadata"].properties!;
    assert.equal(ownerReferences["x-kubernetes-patch-merge-key"], "uid");
    assert.equal(ownerReferences["x-kubernetes-list-type"], "map");
    assert.equal(finalizers["x-kubernetes-list-type"], "set");
    assert.equal(ownerReferences.items?.["x-kubernetes-map-type"], "atomic");
  });

  it("are cyclic where types are, and complete in each round", () => {
    const { schema } = kindSource("apiextensions.k8s.io", "v1", "CustomResourceDefinition").schema;
    const version = schema.properties!["spec"].properties!["versions"].items!;
    const first = version.properties!["schema"].properties!["openAPIV3Schema"];
    const again = first.properties!["not"].properties!["properties"].additionalProperties;
    assert.equal((again as typeof first).properties, first.properties);
  });

  it("are made once", () => {
    const source = kindSource("rbac.authorization.k8s.io", "v1", "Role");
    assert.equal(source.schema, source.schema);
    const other = kindSource("", "v1", "Secret").schema.schema.properties!["metadata"];
    const own = source.schema.schema.properties!["metadata"];
    assert.equal(own.properties, other.properties);
  });
});
