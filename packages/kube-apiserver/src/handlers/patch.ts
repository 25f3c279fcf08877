/** PATCH of the four types (apiserver: handlers/patch.go). */

import {
  ApiError,
  badRequest,
  conflict,
  type DecodedObject,
  inNamespace,
  invalid,
  jsonKind,
  type KubeObject,
  notFound,
  type ServedResource,
  type UpdatedObject,
  unsupportedMediaType,
} from "@quorate/kube-storage";
import { applyPatch, type PatchType } from "../apply/apply-patch.ts";
import type { FieldManager } from "../apply/field-manager.ts";
import { parseText } from "./read-body.ts";
import {
  checkName,
  type HandlerDeps,
  namespaceFor,
  type ResourceCall,
  resourceOf,
} from "./resource-call.ts";
import { mutatedUpdate, sendUpdated } from "./update.ts";
import { type ParsedWriteOptions, writeOptionsOf } from "./write-options.ts";

const JSON_PATCH = "application/json-patch+json";
const MERGE_PATCH = "application/merge-patch+json";
const STRATEGIC_PATCH = "application/strategic-merge-patch+json";
const APPLY = "application/apply-patch+yaml";
/** Operations of a JSON patch (apiserver: maxJSONPatchOperations). */
const MAX_OPERATIONS = 10_000;

/** The types that a resource takes: strategic merges need the declarations of built-in kinds. */
export function patchTypesOf(resource: ServedResource): readonly PatchType[] {
  return resource.strategicMerge
    ? [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY]
    : [JSON_PATCH, MERGE_PATCH, APPLY];
}

/** A patch as the client sent it. */
interface Patch {
  readonly type: PatchType;
  readonly value: unknown;
  /** Duplicate fields of the patch itself. */
  readonly duplicates: readonly string[];
}

export async function patch(given: ResourceCall, deps: HandlerDeps): Promise<void> {
  const { call, target, resource, ctx } = given;
  const [type] = call.header("content-type").split(";", 1) as [PatchType];
  const types = patchTypesOf(resource);
  if (!types.includes(type)) throw wrongType(resource);
  const isApply = type === APPLY;
  const options = writeOptionsOf(call.query, "PatchOptions", call.userAgent, isApply);
  const body = await call.body();
  const sent = await readPatch(type, body, deps);
  call.audit?.patch(sent.value, body.length);
  const manager = deps.fieldManagers.of(resource);
  const updated: UpdatedObject = {
    make: async (_ctx, old) => {
      const made = isApply
        ? await applied(given, deps, manager, options, sent, old)
        : await patched(given, deps, manager, options, sent, old);
      const object = inNamespace(made, namespaceFor(resource, ctx));
      checkName(object, target.name);
      return mutatedUpdate(given, deps, options, object, old);
    },
  };
  await sendUpdated(given, deps, updated, isApply, options);
}

/** Built-in kinds have a route for each type; custom ones look at the type themselves. */
function wrongType(resource: ServedResource): ApiError {
  if (resource.protobuf === undefined) return unsupportedMediaType(patchTypesOf(resource));
  return new ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
}

/** Throws ApiError 400 and 413. */
async function readPatch(
  type: PatchType,
  bytes: Uint8Array,
  { clock }: HandlerDeps,
): Promise<Patch> {
  const isApply = type === APPLY;
  try {
    const { value, duplicates } = await parseText(bytes, isApply ? "yaml" : "json", clock);
    if (type === JSON_PATCH && Array.isArray(value) && value.length > MAX_OPERATIONS)
      throw new ApiError(
        413,
        "RequestEntityTooLarge",
        `Request entity too large: The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${value.length}`,
      );
    return { type, value, duplicates };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    const what = isApply ? "error decoding YAML" : "error decoding patch";
    throw badRequest(`${what}: ${(error as Error).message}`);
  }
}

/** Server-side apply. */
async function applied(
  { resource, ctx, target }: ResourceCall,
  { clock }: HandlerDeps,
  manager: FieldManager,
  options: ParsedWriteOptions,
  { value, duplicates }: Patch,
  old: KubeObject | undefined,
): Promise<KubeObject> {
  if (typeof value !== "object" || Array.isArray(value))
    throw badRequest(
      "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal " +
        `${jsonKind(value)} into Go value of type map[string]interface {}`,
    );
  const object = await manager.apply(
    old,
    (value ?? {}) as KubeObject,
    options.fieldManager,
    resource.subresource,
    options.force === true,
    clock.wallMs(),
  );
  if (old === undefined && object.metadata.uid) {
    const why = `uid mismatch: the provided object specified uid ${object.metadata.uid}, and no existing object was found`;
    throw conflict(resourceOf(resource), target.name, why);
  }
  if (duplicates.length > 0 && options.fieldValidation === "Strict")
    throw badRequest(`error strict decoding YAML: ${duplicates.join(", ")}`);
  if (options.fieldValidation === "Warn") for (const text of duplicates) ctx.warn(text);
  return object;
}

/** The other three types. */
async function patched(
  { resource, target, ctx }: ResourceCall,
  { clock }: HandlerDeps,
  manager: FieldManager,
  { fieldValidation, fieldManager }: ParsedWriteOptions,
  { type, value, duplicates }: Patch,
  old: KubeObject | undefined,
): Promise<KubeObject> {
  if (old === undefined) throw notFound(resourceOf(resource), target.name);
  const result = applyPatch(type as Exclude<PatchType, typeof APPLY>, old, value, resource.schema);
  const decoded = decodedPatch(resource, result);
  const strict = [...duplicates, ...decoded.strictErrors];
  if (strict.length > 0 && fieldValidation === "Strict")
    throw invalidPatch(result, `strict decoding error: ${strict.join(", ")}`);
  if (fieldValidation === "Warn") for (const text of strict) ctx.warn(text);
  const { object } = decoded;
  return manager.update(old, object, fieldManager, resource.subresource, clock.wallMs());
}

function decodedPatch(resource: ServedResource, result: unknown): DecodedObject {
  try {
    return resource.decode(result);
  } catch (error) {
    if (error instanceof ApiError && error.httpStatus !== 400) throw error;
    throw invalidPatch(result, (error as Error).message);
  }
}

/** The longest result of a patch that an error quotes. */
const MAX_QUOTED_CHARS = 2048;

/** The patched value is no object of the kind; Kubernetes names no kind here. */
function invalidPatch(result: unknown, why: string): ApiError {
  const text = JSON.stringify(JSON.stringify(result).slice(0, MAX_QUOTED_CHARS));
  const message = `Invalid value: ${text}: ${why}`;
  return invalid({ group: "", kind: "" }, "", [
    { type: "FieldValueInvalid", field: "patch", message },
  ]);
}
