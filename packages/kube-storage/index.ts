/** Kubernetes' storage layer: storage interface, cacher, registry, codec. */

export { Cacher } from "./src/cacher/cacher.ts";
export type { MetricSample } from "./src/cacher/cacher-metrics.ts";
export { builtinKind, kindSource, metaProtobuf } from "./src/codec/builtin-kind.ts";
export { canonicalJson, jsonCodec } from "./src/codec/json-codec.ts";
export {
  duplicateFieldsOf,
  JsonSyntaxError,
  jsonKind,
  parseJson,
  parseJsonInSlices,
  type StatedKind,
  statedKind,
} from "./src/codec/json-parser.ts";
export { type KubeAccess, kubeAccessOf } from "./src/codec/kubeconfig.ts";
export { fitsDepth, MAX_JSON_DEPTH } from "./src/codec/limits.ts";
export { storedValueText } from "./src/codec/stored-value.ts";
export { parseYaml, writeYaml } from "./src/codec/yaml.ts";
export {
  type Cancellation,
  Canceller,
  throwIfAborted,
  unlessAborted,
} from "./src/meta/cancellation.ts";
export { sameJson, semanticEqual } from "./src/meta/equality.ts";
export * as fieldErrors from "./src/meta/field-errors.ts";
export {
  duplicate,
  fieldForbidden,
  invalidValue,
  notSupported,
  required,
  tooLong,
  tooMany,
  typeInvalid,
} from "./src/meta/field-errors.ts";
export { fieldEquals, parseFieldSelector } from "./src/meta/field-selector.ts";
export { goJson } from "./src/meta/go-text.ts";
export {
  apiVersionOf,
  compareVersions,
  type GroupVersion,
  type GroupVersionKind,
  type GroupVersionResource,
  parseApiVersion,
  resourceName,
} from "./src/meta/kinds.ts";
export { SelectorSyntaxError } from "./src/meta/label-requirement.ts";
export { parseLabelSelector } from "./src/meta/label-selector.ts";
export {
  type LabelSelectorObject,
  selectorOfObject,
  validateLabelSelector,
} from "./src/meta/label-selector-object.ts";
export {
  isConfigMapKey,
  isDns1035Label,
  isDns1123Label,
  isDns1123Subdomain,
  isLabelValue,
  isPathSegmentName,
  isQualifiedName,
  nameIsDnsLabel,
  nameIsDnsSubdomain,
  nameIsPathSegment,
  patternText,
  SUBDOMAIN_PATTERN,
} from "./src/meta/names.ts";
export {
  inNamespace,
  isObject,
  type Json,
  type JsonObject,
  jsonOf,
  type KubeObject,
  kubeObjectOf,
  type ManagedFieldsEntry,
  type ObjectMeta,
  type OwnerReference,
  withField,
  withMetadata,
  withoutSystemFields,
} from "./src/meta/object.ts";
export {
  FOREGROUND_FINALIZER,
  MAX_FIELD_MANAGER_BYTES,
  ORPHAN_FINALIZER,
  validateAnnotations,
  validateFieldManager,
  validateLabels,
  validateObjectMeta,
} from "./src/meta/object-meta-validation.ts";
export {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  quantityMilli,
  quantityNanos,
  quantityNumber,
  subtractQuantities,
} from "./src/meta/quantity.ts";
export { type AttributesOf, EVERYTHING, type Selector } from "./src/meta/selectors.ts";
export { SHARD_FIELDS, type ShardRange, ShardSelector, withUid } from "./src/meta/shards.ts";
export {
  ApiError,
  aggregateText,
  badRequest,
  conflict,
  expired,
  type FieldError,
  forbidden,
  internalError,
  invalid,
  methodNotSupported,
  notAcceptable,
  notFound,
  requestEntityTooLarge,
  type Status,
  type StatusCause,
  type StatusDetails,
  serviceUnavailable,
  timeout,
  unauthorized,
  unsupportedMediaType,
} from "./src/meta/status.ts";
export { metaTime, microTime, parseTime } from "./src/meta/time.ts";
export { validateDeleteOptions } from "./src/registry/before-delete.ts";
export { ConvertedStorage } from "./src/registry/converted-storage.ts";
export { generateName, MAX_NAME_ATTEMPTS, newUid } from "./src/registry/create.ts";
export {
  DELETE_COLLECTION_PAGE_OBJECTS,
  MAX_CONCURRENT_DELETIONS,
} from "./src/registry/delete-collection.ts";
export { RequestWriter } from "./src/registry/dry-run.ts";
export { attributesOf } from "./src/registry/read.ts";
export type {
  KindSource,
  RegistryDeps,
  ResourceParts,
  ResourceSpec,
  ScalePaths,
  SpecStorages,
  StorageFactory,
} from "./src/registry/resource-spec.ts";
export { builtinSpec, keyOf } from "./src/registry/resource-spec.ts";
export { type ResourceStore, storeOf, subresourceStoreOf } from "./src/registry/store.ts";
export type { BegunWrite, StoreHooks, Strategy } from "./src/registry/strategy.ts";
export { plainStrategy, statusStrategyOf, withGeneration } from "./src/registry/strategy.ts";
export {
  AGE,
  ageSince,
  DEFAULT_TABLE,
  humanDuration,
  NAME_AND_AGE,
  nameColumn,
  type TableField,
  tableOf,
  textColumn,
} from "./src/registry/table.ts";
export { keepManagedTimes, MODIFIED } from "./src/registry/update.ts";
export type { RequestContext } from "./src/rest/context.ts";
export { ANONYMOUS, type Authenticator, type UserInfo } from "./src/rest/context.ts";
export {
  type Creater,
  type DeletionPropagation,
  type Getter,
  type Lister,
  type NamedCreater,
  type RestDeleteOptions,
  type RestGetOptions,
  type RestList,
  type RestListOptions,
  type RestStorage,
  storageWith,
  type TableColumn,
  type TableConvertor,
  type UpdatedObject,
  type Updater,
  type ValidateObject,
  type ValidateUpdate,
  type Watcher,
  type WriteOptions,
} from "./src/rest/interfaces.ts";
export {
  type DecodedObject,
  isBuiltIn,
  type ServedResource,
  type ServedResources,
} from "./src/rest/served-resource.ts";
export {
  type Amounts,
  added,
  excess,
  masked,
  sameAmounts,
  shownAmounts,
  withoutZeros,
} from "./src/schema/amounts.ts";
export { builtinSchema, referenceOf, typeSchema } from "./src/schema/builtin-schema.ts";
export { compareUtf8, setField } from "./src/schema/maps.ts";
export { messageType } from "./src/schema/message-type.ts";
export {
  type Asked,
  type AskingContainer,
  type AskingPod,
  sumOf,
  sumWithOverhead,
} from "./src/schema/pod-amounts.ts";
export type { ObjectSchema, Schema, ValidationRule } from "./src/schema/schema.ts";
export {
  type ClusterClient,
  ClusterError,
  type ClusterEvent,
  type ClusterPart,
  type ClusterRange,
  type ClusterRangeOptions,
  type ClusterWatch,
  type ClusterWatchOptions,
  type ClusterWatchResponse,
  type ClusterWrite,
  type ClusterWriteOptions,
} from "./src/storage/cluster-client.ts";
export type { ObjectCodec, Untransformed, ValueTransformer } from "./src/storage/codec.ts";
export { Compactor } from "./src/storage/compactor.ts";
export { StorageError, textOf } from "./src/storage/errors.ts";
export { EtcdStore } from "./src/storage/etcd-store.ts";
export { DecodedObjects, identityTransformer } from "./src/storage/etcd-values.ts";
export type {
  CallOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  ListResult,
  Preconditions,
  StorageInterface,
  StorageStats,
  UpdateFunction,
  UpdateOptions,
  Versioner,
  Watch,
  WatchEvent,
  WatchEventType,
  WatchListener,
} from "./src/storage/interface.ts";
export { interpretStorageError } from "./src/storage/interpret-error.ts";
export { KeyRevisions } from "./src/storage/key-revisions.ts";
export { rootOf } from "./src/storage/keys.ts";
export { LeaseManager } from "./src/storage/lease-manager.ts";
export type { StoredObject } from "./src/storage/stored-object.ts";
export { MadeObject } from "./src/storage/stored-object.ts";
