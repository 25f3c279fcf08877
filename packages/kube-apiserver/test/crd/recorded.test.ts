/** The texts of errors are those of kube-apiserver 1.36.3 (recorded.json). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import {
  type FieldError,
  type Json,
  nameIsDnsSubdomain,
  type Schema,
  validateObjectMeta,
} from "@quorate/kube-storage";
import { withDefaults } from "../../src/crd/definition/strategy.ts";
import type { Crd } from "../../src/crd/definition/types.ts";
import { crdErrors } from "../../src/crd/definition/validate.ts";
import { applyDefaults, dropNulls } from "../../src/crd/schema/defaults.ts";
import { validateEmbedded } from "../../src/crd/schema/embedded.ts";
import { validateListTypes } from "../../src/crd/schema/list-types.ts";
import { prune } from "../../src/crd/schema/prune.ts";
import { loadPatterns } from "../../src/crd/validation/patterns.ts";
import { Validation } from "../../src/crd/validation/validate-value.ts";
import { definitionCases } from "./cases.ts";
import { valueCases } from "./value-cases.ts";

type Recording = Readonly<Record<string, readonly string[]>>;
const recorded = JSON.parse(readFileSync(new URL("recorded.json", import.meta.url), "utf8")) as {
  definitions: Recording;
  values: Recording;
};

const patterns = await loadPatterns();

function texts(errors: readonly FieldError[]): string[] {
  return errors.map(({ field, message }) => `${field}: ${message}`).sort();
}

describe("definitions", () => {
  const rules = {
    patterns,
    ruleChecker: undefined,
    defaultRules: undefined,
    pause: async () => {},
  };
  for (const { name, crd } of definitionCases) {
    test(name, async () => {
      const defaulted = withDefaults(crd as unknown as Crd);
      const errors = [
        ...validateObjectMeta(defaulted.metadata, false, nameIsDnsSubdomain),
        ...(await crdErrors(defaulted, rules)),
      ];
      assert.deepEqual(texts(errors), recorded.definitions[name]);
    });
  }
});

describe("values", () => {
  for (const { name, schema, value, old } of valueCases) {
    test(name, () => {
      const alone = value === undefined && old === undefined;
      const below = {
        type: "object",
        properties: { value: schema },
        ...(alone ? { required: ["value"] } : {}),
      };
      const root = {
        type: "object",
        properties: { spec: { type: "object", properties: { f: below } } },
      };
      const objectOf = (one: Json | undefined) =>
        ({ spec: { f: one === undefined ? {} : { value: one } } }) as Json;
      const typed = root as unknown as Schema;
      const read = applyDefaults(dropNulls(prune(objectOf(value), typed), typed), typed);
      const errors = [
        ...new Validation(patterns, "").run(
          read,
          typed,
          old === undefined ? undefined : objectOf(old),
        ),
        ...validateEmbedded(read, typed),
        ...validateListTypes(read, typed),
      ];
      assert.deepEqual(texts(errors), recorded.values[name]);
    });
  }
});
