/**
 * Structural schemas (OpenAPI v3 with Kubernetes' extensions), of built-in kinds and of
 * CustomResourceDefinitions alike. A schema is a graph of shared nodes and may be cyclic; there are
 * no $ref in it.
 */
import type { GroupVersionKind } from "../meta/kinds.ts";
import type { Json } from "../meta/object.ts";

export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

export interface Schema {
  /** The name under which OpenAPI documents share it, such as "io.k8s.api.core.v1.ConfigMap". */
  readonly definition?: string;
  readonly type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  readonly format?: string;
  readonly description?: string | undefined;
  readonly title?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly default?: Json;
  readonly example?: Json;
  readonly enum?: readonly Json[];
  readonly nullable?: boolean;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-embedded-resource"?: boolean;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: "atomic" | "granular";
  readonly "x-kubernetes-patch-merge-key"?: string;
  readonly "x-kubernetes-patch-strategy"?: string;
  readonly "x-kubernetes-validations"?: readonly ValidationRule[];
  /** Of a whole object: the fields by which lists can be selected, as it is published. */
  readonly "x-kubernetes-selectable-fields"?: readonly { readonly fieldPath: string }[];
}

/** The schema of a kind, metadata included. */
export interface ObjectSchema {
  readonly kind: GroupVersionKind;
  readonly schema: Schema;
}
