/**
 * JSON patches (RFC 6902), as the library of Kubernetes applies them (evanphx/json-patch v4). It
 * departs from the RFC: indexes may be negative and count from the end, "replace" creates fields
 * that are not there, and "copy" of a missing field creates null.
 */

import { ApiError, badRequest, sameJson, setField } from "@quorate/kube-storage";
import { CodedError, defined, utf8Length } from "@quorate/proto";
import {
  MAX_JSON_PATCH_COPY_BYTES,
  MAX_JSON_PATCH_MOVED_ITEMS,
  MAX_JSON_PATCH_OPERATIONS,
  unprocessable,
} from "./patch-limits.ts";
import { isMap } from "./typed-value.ts";

type MutableMap = Record<string, unknown>;

/** An operation does not apply. Its text is that of Go's library. */
export class PatchFailure extends CodedError<"PatchFailed"> {
  constructor(why: string) {
    super("PatchFailure", "PatchFailed", why);
  }
}

/** Text of a PatchFailure: a test found another value. */
export const TEST_FAILED = "test failed";

/** As applyJsonPatch, but throws PatchFailure for what does not apply. */
export function jsonPatched(document: unknown, patch: unknown): unknown {
  const patcher = new JsonPatcher(document);
  for (const operation of operationsOf(patch)) patcher.run(operation);
  return patcher.document;
}

/**
 * Applies a patch. Neither argument changes; unchanged parts are shared.
 * @throws ApiError 400 where the patch is none, 413 where it is too long, 422 where it does not
 *   apply
 */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  const operations = operationsOf(patch);
  if (operations.length > MAX_JSON_PATCH_OPERATIONS) {
    throw new ApiError(
      413,
      "RequestEntityTooLarge",
      "Request entity too large: The allowed maximum operations in a JSON patch is " +
        `${MAX_JSON_PATCH_OPERATIONS}, got ${operations.length}`,
    );
  }
  try {
    return jsonPatched(document, operations);
  } catch (error) {
    if (error instanceof PatchFailure) throw unprocessable();
    throw error;
  }
}

function operationsOf(patch: unknown): readonly MutableMap[] {
  if (patch === null) return [];
  if (!Array.isArray(patch)) throw malformed(patch, "Go value of type []handlers.jsonPatchOp");
  return patch.map((operation) => {
    if (operation === null) return {};
    if (!isMap(operation)) throw malformed(operation, "Go value of type handlers.jsonPatchOp");
    for (const field of ["op", "path", "from"]) {
      const text = operation[field];
      if (text === undefined || text === null || typeof text === "string") continue;
      throw malformed(text, `Go struct field jsonPatchOp.${field} of type string`);
    }
    return operation;
  });
}

function malformed(value: unknown, type: string): ApiError {
  return badRequest(`error decoding patch: json: cannot unmarshal ${jsonType(value)} into ${type}`);
}

/** The word of Go's JSON errors for a value. */
export function jsonType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  return value === null ? "null" : typeof value;
}

class JsonPatcher {
  document: unknown;
  /** Containers that this patch made: they may be changed in place. */
  readonly #own = new WeakSet<object>();
  #copiedBytes = 0;
  #movedItems = 0;

  constructor(document: unknown) {
    this.document = document;
  }

  run(operation: MutableMap): void {
    const value = Object.hasOwn(operation, "value") ? operation["value"] : null;
    switch (operation["op"]) {
      case "add":
        this.#add(textOf(operation, "path"), value);
        return;
      case "remove":
        this.#remove(textOf(operation, "path"));
        return;
      case "replace":
        this.#replace(textOf(operation, "path"), value);
        return;
      case "test":
        this.#test(textOf(operation, "path"), value);
        return;
      case "move":
        this.#move(textOf(operation, "from"), operation);
        return;
      case "copy":
        this.#copy(textOf(operation, "from"), operation);
        return;
      default:
        throw new PatchFailure(`Unexpected kind: ${operation["op"] ?? "unknown"}`);
    }
  }

  #add(path: string, value: unknown): void {
    const [parent, key] = this.#parentOf(path, `add operation does not apply: ${missing(path)}`);
    if (!Array.isArray(parent)) setField(parent, key, value);
    else if (key === "-") parent.push(value);
    else {
      const at = indexIn(key, parent.length + 1);
      this.#moveItems(parent.length - at);
      parent.splice(at, 0, value);
    }
  }

  /** @param as what the text of a failure names, where that is not the removal */
  #remove(path: string, as?: (key: string) => string): void {
    const [parent, key] = this.#parentOf(path, `remove operation does not apply: ${missing(path)}`);
    if (Array.isArray(parent)) {
      const at = indexIn(key, parent.length);
      this.#moveItems(parent.length - at);
      parent.splice(at, 1);
    } else if (!Object.hasOwn(parent, key)) {
      const why = `Unable to remove nonexistent key: ${key}: missing value`;
      throw new PatchFailure(`error in ${as?.(key) ?? `remove for path: '${path}'`}: ${why}`);
    } else delete parent[key];
  }

  #moveItems(count: number): void {
    this.#movedItems += count;
    if (this.#movedItems > MAX_JSON_PATCH_MOVED_ITEMS) throw new PatchFailure("moves too much");
  }

  #replace(path: string, value: unknown): void {
    if (path === "") {
      if (typeof value !== "object" || value === null) throw new PatchFailure("no document");
      this.document = value;
      return;
    }
    const why = `replace operation does not apply: doc is missing path: ${path}: missing value`;
    const [parent, key] = this.#parentOf(path, why);
    if (Array.isArray(parent)) parent[indexIn(key, parent.length)] = value;
    else setField(parent, key, value);
  }

  #test(path: string, value: unknown): void {
    const present = path === "" ? this.document : this.#valueAt(path, "test", "is missing path");
    if (!sameJson(present ?? null, value)) throw new PatchFailure(TEST_FAILED);
  }

  #move(from: string, operation: MutableMap): void {
    const value = this.#valueAt(from, "move", "doc is missing from path");
    this.#remove(from, (key) => `move for path: '${key}'`);
    this.#add(textOf(operation, "path"), value ?? null);
  }

  #copy(from: string, operation: MutableMap): void {
    const value = this.#valueAt(from, "copy", "doc is missing from path") ?? null;
    const path = textOf(operation, "path");
    const why = `doc is missing destination path: ${path}: missing value`;
    this.#parentOf(path, `copy operation does not apply: ${why}`);
    // A field that is not there costs nothing.
    const json = value === null ? "" : JSON.stringify(value);
    this.#copiedBytes += utf8Length(json);
    if (this.#copiedBytes > MAX_JSON_PATCH_COPY_BYTES) throw new PatchFailure("copies too much");
    this.#add(path, typeof value === "object" && value !== null ? JSON.parse(json) : value);
  }

  #valueAt(path: string, op: string, what: string): unknown {
    const why = `${op} operation does not apply: ${what}: ${path}: missing value`;
    const [parent, key] = this.#parentOf(path, why);
    if (Array.isArray(parent)) return parent[indexIn(key, parent.length)];
    return Object.hasOwn(parent, key) ? parent[key] : undefined;
  }

  /** The container of a path, ready to be changed, and the last step. @param why it is missing */
  #parentOf(path: string, why: string): [MutableMap | unknown[], string] {
    const steps = path.split("/").map(decodeStep);
    if (steps.length < 2) throw new PatchFailure(why);
    let at = (this.document = this.#owned(this.document, why));
    for (const step of steps.slice(1, -1)) {
      const isArray = Array.isArray(at);
      const key = isArray ? indexIn(step, (at as unknown[]).length) : step;
      if (!isArray && !Object.hasOwn(at, key)) throw new PatchFailure(why);
      const next = this.#owned((at as MutableMap)[key], why);
      if (isArray) (at as unknown[])[key as number] = next;
      else setField(at as MutableMap, step, next);
      at = next;
    }
    return [at, defined(steps.at(-1), "the last step")];
  }

  #owned(value: unknown, why: string): MutableMap | unknown[] {
    if (typeof value !== "object" || value === null) throw new PatchFailure(why);
    if (this.#own.has(value)) return value as MutableMap;
    const copy = Array.isArray(value) ? value.slice() : { ...value };
    this.#own.add(copy);
    return copy;
  }
}

function missing(path: string): string {
  return `doc is missing path: "${path}": missing value`;
}

function textOf(operation: MutableMap, name: string): string {
  const text = operation[name];
  if (typeof text !== "string") throw new PatchFailure(`missing ${name}`);
  return text;
}

/** @param length of the list; a negative index counts from its end */
function indexIn(step: string, length: number): number {
  if (!/^[+-]?\d+$/.test(step)) throw new PatchFailure("not an index");
  const index = Number(step);
  if (index >= length || index < -length) throw new PatchFailure("no such index");
  return index < 0 ? index + length : index;
}

function decodeStep(step: string): string {
  return step.includes("~") ? step.replace(/~1|~0/g, (code) => (code === "~1" ? "/" : "~")) : step;
}
