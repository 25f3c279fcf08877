/**
 * The rules for the defaults of a schema: each one is valid, and has no fields that pruning would
 * remove (apiextensions-apiserver: pkg/apiserver/schema/defaulting/validation.go).
 */

import type { FieldError, Json, Schema } from "@quorate/kube-storage";
import { invalidValue, sameJson } from "@quorate/kube-storage";
import { coerceEmbedded, EmbeddedError, validateEmbedded } from "../schema/embedded.ts";
import { child, keyed } from "../schema/paths.ts";
import { asResource, META_FIELDS, prune } from "../schema/prune.ts";
import { traitsOf } from "../schema/traits.ts";
import type { Patterns } from "../validation/patterns.ts";
import { Validation } from "../validation/validate-value.ts";

/** Receives the defaults that the rules (x-kubernetes-validations) of their schemas judge later. */
export type DefaultRuleCheck = (schema: Schema, value: Json, path: string) => void;

/** How defaults are checked. */
export interface DefaultOptions {
  /** Whether unknown fields in defaults are refused. */
  readonly pruned: boolean;
  readonly patterns: Patterns | undefined;
  readonly rules: DefaultRuleCheck | undefined;
}

/** @param schema of a whole resource */
export function defaultErrors(schema: Schema, path: string, options: DefaultOptions): FieldError[] {
  const errors: FieldError[] = [];
  visit(asResource(schema), path, false, options, errors);
  return errors;
}

function visit(
  schema: Schema,
  path: string,
  insideMeta: boolean,
  options: DefaultOptions,
  to: FieldError[],
): void {
  const embedded = schema["x-kubernetes-embedded-resource"] === true;
  const inside = insideMeta && !embedded;
  if (!traitsOf(schema).defaults) return;
  if (schema.default !== undefined && schema.default !== null) {
    to.push(...errorsOf(schema, schema.default, child(path, "default"), inside, options));
  }
  if (schema.items !== undefined) visit(schema.items, child(path, "items"), inside, options, to);
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    const where = keyed(child(path, "properties"), key);
    visit(property, where, inside || (embedded && META_FIELDS.has(key)), options, to);
  }
}

function errorsOf(
  schema: Schema,
  value: Json,
  path: string,
  insideMeta: boolean,
  options: DefaultOptions,
): FieldError[] {
  const errors: FieldError[] = [];
  if (!insideMeta) {
    if (options.pruned && !sameJson(prune(value, schema), value)) {
      errors.push(invalidValue(path, value, "must not have unknown fields"));
    }
    const broken = embeddedErrors(schema, value, path);
    if (broken.length > 0) return [...errors, ...broken];
  }
  const prefixed = new Validation(options.patterns, path).run(value, schema, undefined);
  if (prefixed.length > 0) return [...errors, ...prefixed];
  if (traitsOf(schema).rules) options.rules?.(schema, value, path);
  return errors;
}

function embeddedErrors(schema: Schema, value: Json, path: string): FieldError[] {
  try {
    coerceEmbedded(value, schema, { dropMalformed: false }, path);
    return validateEmbedded(value, schema, path);
  } catch (error) {
    if (!(error instanceof EmbeddedError)) throw error;
    return [error.problem];
  }
}
