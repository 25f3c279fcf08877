/**
 * Rules for the metadata of all kinds (apimachinery: api/validation/objectmeta.go,
 * apis/meta/v1/validation/validation.go).
 */
import { quoteText as goQuote, isPrintable, utf8Length } from "@quorate/proto";
import { fieldForbidden, invalidValue, required, tooLong } from "./field-errors.ts";
import { goJson } from "./go-text.ts";
import { parseApiVersion } from "./kinds.ts";
import { isLabelValue, isQualifiedName, type NameRule, nameIsDnsLabel } from "./names.ts";
import type { ManagedFieldsEntry, ObjectMeta, OwnerReference } from "./object.ts";
import type { FieldError } from "./status.ts";

export const MAX_ANNOTATIONS_BYTES = 256 * 1024;
export const MAX_FIELD_MANAGER_BYTES = 128;
export const MAX_SUBRESOURCE_NAME_BYTES = 256;
export const ORPHAN_FINALIZER = "orphan";
export const FOREGROUND_FINALIZER = "foregroundDeletion";

/** Labels: keys are qualified names, values are short. */
export function validateLabels(
  labels: Readonly<Record<string, string>> | undefined,
  field: string,
): FieldError[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...isQualifiedName(key).map((text) => invalidValue(field, key, text)),
    ...isLabelValue(value).map((text) => invalidValue(field, value, text)),
  ]);
}

/** Annotations: keys are qualified names of either case; 256 KiB in all. */
export function validateAnnotations(
  annotations: Readonly<Record<string, string>> | undefined,
  field: string,
): FieldError[] {
  const errors: FieldError[] = [];
  let sizeBytes = 0;
  for (const [key, value] of Object.entries(annotations ?? {})) {
    for (const text of isQualifiedName(key.toLowerCase())) {
      errors.push(invalidValue(field, key, text));
    }
    sizeBytes += utf8Length(key) + utf8Length(value);
  }
  if (sizeBytes > MAX_ANNOTATIONS_BYTES) errors.push(tooLong(field, MAX_ANNOTATIONS_BYTES));
  return errors;
}

function validateOwnerReference(owner: OwnerReference, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const { apiVersion = "", kind = "", name = "", uid = "" } = owner;
  const parsed = parseApiVersion(apiVersion);
  if (parsed === undefined) {
    errors.push(invalidValue(`${field}.apiVersion`, apiVersion, "version must not be empty"));
  }
  const empty = (child: string): FieldError =>
    invalidValue(`${field}.${child}`, "", "must not be empty");
  if (kind === "") errors.push(empty("kind"));
  if (name === "") errors.push(empty("name"));
  if (uid === "") errors.push(empty("uid"));
  if (apiVersion === "v1" && kind === "Event") {
    const text = "/v1, Kind=Event is disallowed from being an owner";
    errors.push(invalidValue(field, owner, text));
  }
  return errors;
}

/** Controllers beyond the first that errors name; Kubernetes names all. */
const MAX_NAMED_CONTROLLERS = 10;

/** Owners: complete references, at most one of them the controller. */
export function validateOwnerReferences(
  owners: readonly OwnerReference[] | undefined,
  field: string,
): FieldError[] {
  const errors: FieldError[] = [];
  let first = "";
  let others = 0;
  for (const owner of owners ?? []) {
    errors.push(...validateOwnerReference(owner, field));
    if (owner.controller !== true) continue;
    const name = `${owner.kind}/${owner.name}`;
    if (first === "") {
      first = name;
      continue;
    }
    // Each text quotes all owners.
    if (++others > MAX_NAMED_CONTROLLERS) continue;
    const text =
      'Only one reference can have Controller set to true. Found "true" in references for ' +
      `${first} and ${name}`;
    errors.push(invalidValue(field, owners, text));
  }
  return errors;
}

/** Finalizers: qualified names, and not both of the garbage collector's. */
export function validateFinalizers(
  finalizers: readonly string[] | undefined,
  field: string,
): FieldError[] {
  const all = finalizers ?? [];
  const errors = all.flatMap((name) =>
    isQualifiedName(name).map((text) => invalidValue(field, name, text)),
  );
  if (all.includes(ORPHAN_FINALIZER) && all.includes(FOREGROUND_FINALIZER)) {
    const text = `finalizer ${ORPHAN_FINALIZER} and ${FOREGROUND_FINALIZER} cannot be both set`;
    errors.push(invalidValue(field, all, text));
  }
  return errors;
}

/** The name of a field manager: up to 128 bytes that can be printed. */
export function validateFieldManager(manager: string, field: string): FieldError[] {
  const errors: FieldError[] = [];
  if (utf8Length(manager) > MAX_FIELD_MANAGER_BYTES) {
    errors.push(tooLong(field, MAX_FIELD_MANAGER_BYTES));
  }
  let position = 0;
  // Each error quotes the whole name, so there are no more of them than a name that fits has.
  for (const character of manager.slice(0, MAX_FIELD_MANAGER_BYTES)) {
    if (!isPrintable(character)) {
      const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
      const text = `invalid character U+${code} (at position ${position})`;
      errors.push(invalidValue(field, manager.slice(0, MAX_FIELD_MANAGER_BYTES), text));
    }
    position += utf8Length(character);
  }
  return errors;
}

/** managedFields: known operations and formats, short names. */
export function validateManagedFields(
  entries: readonly ManagedFieldsEntry[] | undefined,
  field: string,
): FieldError[] {
  return (entries ?? []).flatMap((entry, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    const { operation = "", fieldsType = "", manager = "", subresource = "" } = entry;
    if (operation !== "Apply" && operation !== "Update") {
      errors.push(invalidValue(`${at}.operation`, operation, "must be `Apply` or `Update`"));
    }
    if (fieldsType !== "" && fieldsType !== "FieldsV1") {
      errors.push(invalidValue(`${at}.fieldsType`, fieldsType, "must be `FieldsV1`"));
    }
    errors.push(...validateFieldManager(manager, `${at}.manager`));
    if (utf8Length(subresource) > MAX_SUBRESOURCE_NAME_BYTES) {
      errors.push(tooLong(`${at}.subresource`, MAX_SUBRESOURCE_NAME_BYTES));
    }
    return errors;
  });
}

function validateNamespace(meta: ObjectMeta, namespaced: boolean, field: string): FieldError[] {
  const { namespace = "" } = meta;
  if (!namespaced) {
    return namespace === "" ? [] : [fieldForbidden(field, "not allowed on this type")];
  }
  if (namespace === "") return [required(field)];
  return nameIsDnsLabel(namespace, false).map((text) => invalidValue(field, namespace, text));
}

/**
 * All errors of an object's metadata. The name has been generated already.
 * @param rule of the kind's names
 */
export function validateObjectMeta(
  meta: ObjectMeta,
  namespaced: boolean,
  rule: NameRule,
  field = "metadata",
): FieldError[] {
  const { generateName = "", name = "", generation = 0 } = meta;
  const errors: FieldError[] = [];
  if (generateName !== "") {
    for (const text of rule(generateName, true)) {
      errors.push(invalidValue(`${field}.generateName`, generateName, text));
    }
  }
  if (name === "") errors.push(required(`${field}.name`, "name or generateName is required"));
  else {
    for (const text of rule(name, false)) {
      errors.push(invalidValue(`${field}.name`, name, text));
    }
  }
  errors.push(...validateNamespace(meta, namespaced, `${field}.namespace`));
  if (generation < 0) {
    const text = "must be greater than or equal to 0";
    errors.push(invalidValue(`${field}.generation`, generation, text));
  }
  errors.push(
    ...validateLabels(meta.labels, `${field}.labels`),
    ...validateAnnotations(meta.annotations, `${field}.annotations`),
    ...validateOwnerReferences(meta.ownerReferences, `${field}.ownerReferences`),
    ...validateFinalizers(meta.finalizers, `${field}.finalizers`),
    ...validateManagedFields(meta.managedFields, `${field}.managedFields`),
  );
  return errors;
}

const IMMUTABLE = ["name", "namespace", "uid"] as const;
const IMMUTABLE_TIMES = [
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
] as const;

function validateNoNewFinalizers(meta: ObjectMeta, old: ObjectMeta, field: string): FieldError[] {
  if (old.deletionTimestamp === undefined) return [];
  const present = new Set(old.finalizers ?? []);
  const added = [...new Set(meta.finalizers ?? [])].filter((name) => !present.has(name)).sort();
  if (added.length === 0) return [];
  const list = `[]string{${added.map(goQuote).join(", ")}}`;
  const why = "no new finalizers can be added if the object is being deleted";
  const text = `${why}, found new finalizers ${list}`;
  return [fieldForbidden(field, text)];
}

/** All errors of metadata that changed. */
export function validateObjectMetaUpdate(
  meta: ObjectMeta,
  old: ObjectMeta,
  field = "metadata",
): FieldError[] {
  const errors = validateNoNewFinalizers(meta, old, `${field}.finalizers`);
  if ((meta.resourceVersion ?? "") === "") {
    const text = "must be specified for an update";
    errors.push(invalidValue(`${field}.resourceVersion`, "", text));
  }
  if ((meta.generation ?? 0) < (old.generation ?? 0)) {
    const text = "must not be decremented";
    errors.push(invalidValue(`${field}.generation`, meta.generation ?? 0, text));
  }
  for (const name of IMMUTABLE) {
    if ((meta[name] ?? "") === (old[name] ?? "")) continue;
    errors.push(invalidValue(`${field}.${name}`, meta[name] ?? "", "field is immutable"));
  }
  for (const name of IMMUTABLE_TIMES) {
    if ((meta[name] ?? null) === (old[name] ?? null)) continue;
    const text = `Invalid value: ${goJson(meta[name] ?? null)}: field is immutable`;
    errors.push({ type: "FieldValueInvalid", field: `${field}.${name}`, message: text });
  }
  errors.push(
    ...validateLabels(meta.labels, `${field}.labels`),
    ...validateAnnotations(meta.annotations, `${field}.annotations`),
    ...validateOwnerReferences(meta.ownerReferences, `${field}.ownerReferences`),
    ...validateManagedFields(meta.managedFields, `${field}.managedFields`),
  );
  return errors;
}
