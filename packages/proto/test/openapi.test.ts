/** The OpenAPI document: valid, kept in docs/, and complete. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { openApiDocument } from "../src/documents.ts";
import { httpRoutes } from "../src/json/routes.ts";
import { jsonTypes } from "../src/json/types.ts";

const document = JSON.parse(openApiDocument());

test("a validator accepts the document", async () => {
  const validator = new Validator();
  const result = await validator.validate(structuredClone(document));
  assert.deepEqual(
    { valid: result.valid, errors: result.errors },
    { valid: true, errors: undefined },
  );
  assert.equal(validator.version, "3.1");
  assert.doesNotThrow(() => validator.resolveRefs());
});

test("docs/reference/openapi.json is the document that the server sends", () => {
  const file = join(import.meta.dirname, "../../../docs/reference/openapi.json");
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), document);
});

test("the document has each path and each field", () => {
  assert.deepEqual(
    Object.keys(document.paths).sort(),
    httpRoutes()
      .map((route) => route.path)
      .sort(),
  );
  for (const type of jsonTypes().values()) {
    const schema = document.components.schemas[type.typeName];
    assert.deepEqual(
      Object.keys(schema.properties),
      type.fields.map((field) => field.name),
    );
  }
  const range = document.paths["/v3/kv/range"].post;
  assert.equal(range.operationId, "KV_Range");
  assert.match(range.description, /\.$/);
});
