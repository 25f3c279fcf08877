/**
 * Creates objects (apiserver: registry/generic/registry/store.go Create, registry/rest/create.go).
 *
 *     system fields, name -> beginCreate -> namespace -> prepareForCreate -> validation
 *       -> warnings -> canonicalize -> admission -> write -> afterCreate
 */

import type { Random } from "@quorate/host";
import { nameIsDnsSubdomain, nameIsPathSegment } from "../meta/names.ts";
import { inNamespace, type KubeObject, withMetadata, withoutSystemFields } from "../meta/object.ts";
import { validateObjectMeta } from "../meta/object-meta-validation.ts";
import { ApiError, generateNameConflict, invalid } from "../meta/status.ts";
import { metaTime } from "../meta/time.ts";
import type { RequestContext } from "../rest/context.ts";
import type { ValidateObject, WriteOptions } from "../rest/interfaces.ts";
import { StorageError } from "../storage/errors.ts";
import { interpretStorageError } from "../storage/interpret-error.ts";
import { RequestWriter } from "./dry-run.ts";
import { keyOf, type StoreContext } from "./resource-spec.ts";

/** Sets uid, creationTimestamp and a generated name. */
export function withSystemFields({ parts }: StoreContext, object: KubeObject): KubeObject {
  const { name = "", generateName: base = "" } = object.metadata;
  return withMetadata(withoutSystemFields(object), {
    uid: newUid(parts.random),
    creationTimestamp: metaTime(parts.clock.wallMs()),
    name: name === "" && base !== "" ? generateName(base, parts.random) : object.metadata.name,
  });
}

/** The object as it will be written. Throws ApiError. Warnings go to the request's context. */
export async function beforeCreate(
  context: StoreContext,
  ctx: RequestContext,
  created: KubeObject,
): Promise<KubeObject> {
  const { spec } = context;
  const { strategy, kind, namespaced, nameRule = nameIsDnsSubdomain } = spec;
  const prepared = strategy.prepareForCreate(
    ctx,
    inNamespace(created, namespaced ? ctx.namespace : ""),
  );
  const name = prepared.metadata.name ?? "";
  const anyName = nameRule === nameIsPathSegment;
  const errors = [
    ...(anyName ? [] : validateObjectMeta(prepared.metadata, namespaced, nameRule)),
    ...(await strategy.validate(ctx, prepared)),
  ];
  if (errors.length > 0) throw invalid(kind, name, errors);
  // Good names of a kind are good names of any kind.
  const common = anyName ? validateObjectMeta(prepared.metadata, namespaced, nameRule) : [];
  if (common.length > 0) throw invalid(kind, name, common);
  for (const text of strategy.warningsOnCreate?.(ctx, prepared) ?? []) ctx.warn(text);
  return strategy.canonicalize?.(prepared) ?? prepared;
}

/** The client's error of a failed create. */
async function createError(
  { spec, parts, resource }: StoreContext,
  ctx: RequestContext,
  key: string,
  object: KubeObject,
  error: unknown,
): Promise<unknown> {
  const { name = "", generateName: base = "" } = object.metadata;
  if (!(error instanceof StorageError) || error.code !== "KeyExists") {
    return interpretStorageError(error, "create", resource, name);
  }
  const exists =
    base === ""
      ? (interpretStorageError(error, "create", resource, name) as ApiError)
      : generateNameConflict({ ...resource, group: spec.kind.group }, name);
  const present = await parts.storage
    .get(key, { ignoreNotFound: true, signal: ctx.signal })
    .catch(() => undefined);
  if (present?.object().metadata.deletionTimestamp === undefined) return exists;
  const message = `object is being deleted: ${exists.message}`;
  return new ApiError(exists.httpStatus, exists.code, message, exists.details);
}

async function createOnce(
  context: StoreContext,
  ctx: RequestContext,
  object: KubeObject,
  validate: ValidateObject,
  options: WriteOptions,
): Promise<KubeObject> {
  const { spec, parts, hooks } = context;
  const filled = withSystemFields(context, object);
  const begun = (await hooks.beginCreate?.(ctx, filled, options.dryRun)) ?? { object: filled };
  let written: KubeObject;
  try {
    const ready = await beforeCreate(context, ctx, begun.object);
    await validate(ready);
    const key = keyOf(spec, ctx.namespace, ready.metadata.name ?? "");
    const writer = new RequestWriter(parts.storage, ctx, options.dryRun);
    try {
      written = await writer.create(key, ready, spec.ttlSeconds?.(ready) ?? 0);
    } catch (error) {
      throw await createError(context, ctx, key, ready, error);
    }
  } catch (error) {
    await begun.finish?.(false);
    throw error;
  }
  await begun.finish?.(true);
  if (!options.dryRun) hooks.afterCreate?.(written);
  return written;
}

/** Creates an object; with generateName, up to 8 names are tried. Throws ApiError. */
export async function createObject(
  context: StoreContext,
  ctx: RequestContext,
  object: KubeObject,
  validate: ValidateObject,
  options: WriteOptions,
): Promise<KubeObject> {
  const { name = "", generateName: base = "" } = object.metadata;
  const attempts = name === "" && base !== "" ? MAX_NAME_ATTEMPTS : 1;
  for (let attempt = 1; ; attempt++) {
    try {
      return await createOnce(context, ctx, object, validate, options);
    } catch (error) {
      const taken = error instanceof ApiError && error.code === "AlreadyExists";
      if (!taken || attempt >= attempts) throw error;
    }
  }
}

const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH = 5;
/**
 * A longer base of a name made from metadata.generateName is cut, so that the name is a DNS label
 * (apiserver: storage/names/generate.go).
 */
const MAX_NAME_BASE_LENGTH = 63 - SUFFIX_LENGTH;
/** How often a create with generateName tries another name. */
export const MAX_NAME_ATTEMPTS = 8;

/** The base with five random characters. */
export function generateName(base: string, random: Random): string {
  let name = base.slice(0, MAX_NAME_BASE_LENGTH);
  for (let drawn = 0; drawn < SUFFIX_LENGTH; drawn++) {
    name += ALPHABET[random.below(ALPHABET.length)];
  }
  return name;
}

/** Bytes as two hexadecimal digits; each request has a uid, so they are looked up. */
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(16).padStart(2, "0"),
);

function hexHigh(value: number): string {
  return `${HEX[value >>> 24]}${HEX[(value >>> 16) & 255]}`;
}

function hexLow(value: number): string {
  return `${HEX[(value >>> 8) & 255]}${HEX[value & 255]}`;
}

/** A random uid (RFC 9562, version 4). Not for secrets. */
export function newUid(random: Random): string {
  const high = (random.uint32() & 0xffff0fff) | 0x4000;
  const low = (random.uint32() & 0x3fffffff) | 0x80000000;
  const [first, last] = [random.uint32(), random.uint32()];
  const start = `${hexHigh(first)}${hexLow(first)}-${hexHigh(high)}-${hexLow(high)}`;
  return `${start}-${hexHigh(low)}-${hexLow(low)}${hexHigh(last)}${hexLow(last)}`;
}
