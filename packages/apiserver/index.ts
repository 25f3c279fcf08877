/**
 * Kubernetes' storage layer and API server: storage, cacher, registry, rest, and the handlers that
 * serve them. node/ has sockets, files and the program.
 */
export type { Admission, AdmissionAttributes } from "./src/admission/admission.ts";
export {
  type WebhookCall,
  WebhookCallError,
  type WebhookCaller,
  type WebhookResponse,
} from "./src/admission/webhook-caller.ts";
export { applyPatch } from "./src/apply/apply-patch.ts";
export { createFieldManager, type FieldManagerOptions } from "./src/apply/field-manager.ts";
export type { FieldManager, PatchType } from "./src/apply/patch-types.ts";
export { ANONYMOUS, type Authenticator, type UserInfo } from "./src/authn/user.ts";
export type { Authorizer, AuthorizerAttributes, Decision } from "./src/authz/authorizer.ts";
export { Cacher, type CacherDeps, type CacherOptions } from "./src/cacher/cacher.ts";
export { CacherMetrics, type MetricSample } from "./src/cacher/cacher-metrics.ts";
export { type BuiltinKind, builtinKind, kindSource } from "./src/codec/builtin-kind.ts";
export {
  duplicateFieldsOf,
  JsonParser,
  JsonSyntaxError,
  parseJson,
} from "./src/codec/json-parser.ts";
export { type StatedKind, statedKind } from "./src/codec/kind-of.ts";
export { metaProtobuf } from "./src/codec/meta-protobuf.ts";
export type { Cancellation } from "./src/meta/cancellation.ts";
export * as fieldErrors from "./src/meta/field-errors.ts";
export { fieldEquals, parseFieldSelector } from "./src/meta/field-selector.ts";
export * from "./src/meta/kinds.ts";
export { parseLabelSelector } from "./src/meta/label-selector.ts";
export * from "./src/meta/object.ts";
export * from "./src/meta/selectors.ts";
export * from "./src/meta/status.ts";
export { attributesOf } from "./src/registry/attributes.ts";
export type { KindSource } from "./src/registry/kind-source.ts";
export type { RegistryDeps, ResourceParts } from "./src/registry/resource-parts.ts";
export type { ResourceSpec, StorageFactory } from "./src/registry/resource-spec.ts";
export { type Serving, servedResourcesOf } from "./src/registry/served-resources.ts";
export { Store } from "./src/registry/store.ts";
export type { StoreHooks, Strategy } from "./src/registry/strategy.ts";
export {
  defineResource,
  type ObjectOf,
  type ResourceDefinition,
  type TypedColumn,
  type TypedObject,
  type TypedResource,
} from "./src/registry/typed/define-resource.ts";
export * as shapes from "./src/registry/typed/shapes.ts";
export type { TypedStrategy } from "./src/registry/typed/typed-strategy.ts";
export type { RequestContext } from "./src/rest/context.ts";
export * from "./src/rest/interfaces.ts";
export type {
  DecodedObject,
  ServedResource,
  ServedResources,
} from "./src/rest/served-resource.ts";
export { OpenApiDocuments, type OpenApiPage } from "./src/schema/openapi/openapi-documents.ts";
export type { ObjectSchema, Schema, ValidationRule } from "./src/schema/schema.ts";
export type { ObjectCodec, Untransformed, ValueTransformer } from "./src/storage/codec.ts";
export { StorageError, type StorageErrorCode } from "./src/storage/errors.ts";
export * from "./src/storage/interface.ts";
export type { StoredObject } from "./src/storage/stored-object.ts";
