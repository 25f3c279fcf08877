/**
 * Options of writes from the query, and of deletions from the body as well (apimachinery:
 * apis/meta/v1/validation).
 */
import {
  badRequest,
  type DeletionPropagation,
  type FieldError,
  fieldForbidden,
  invalid,
  MAX_FIELD_MANAGER_BYTES,
  notSupported,
  type Preconditions,
  type RestDeleteOptions,
  required,
  validateDeleteOptions,
  validateFieldManager,
  type WriteOptions,
} from "@quorate/kube-storage";
import { isPrintable, utf8Length } from "@quorate/proto";
import { integer } from "./list-options.ts";
import type { Query } from "./target.ts";

export type WriteKind = "CreateOptions" | "UpdateOptions" | "PatchOptions";

const META = { group: "meta.k8s.io" };

/** Write options as admission sees them, beside their parsed form. */
export interface ParsedWriteOptions extends WriteOptions {
  /** Undefined where the client did not set it. */
  readonly force: boolean | undefined;
}

/**
 * Reads the options of a create, update or patch. Throws ApiError 422.
 * @param isApply whether the patch is a server-side apply
 */
export function writeOptionsOf(
  query: Query,
  kind: WriteKind,
  userAgent: string,
  isApply = false,
): ParsedWriteOptions {
  const fieldManager = query.first("fieldManager");
  const force = query.has("force") ? query.flag("force") : undefined;
  const errors: FieldError[] = [];
  if (kind === "PatchOptions") errors.push(...patchErrors(fieldManager, force, isApply));
  errors.push(...validateFieldManager(fieldManager, "fieldManager"));
  const dryRun = query.all("dryRun");
  errors.push(...dryRunErrors(dryRun));
  const fieldValidation = query.first("fieldValidation");
  if (!["", "Ignore", "Warn", "Strict"].includes(fieldValidation))
    errors.push(notSupported("fieldValidation", fieldValidation, ["", "Ignore", "Strict", "Warn"]));
  if (errors.length > 0) throw invalid({ ...META, kind }, "", errors);
  return {
    dryRun: dryRun.length > 0,
    fieldManager: managerOf(fieldManager, userAgent),
    fieldValidation: (fieldValidation || "Warn") as WriteOptions["fieldValidation"],
    force,
  };
}

/** The options as the JSON object that admission webhooks receive. */
export function optionsObject(
  kind: "CreateOptions" | "UpdateOptions",
  query: Query,
): Record<string, unknown> {
  const fields: Record<string, unknown> = { kind, apiVersion: "meta.k8s.io/v1" };
  if (query.has("dryRun")) fields["dryRun"] = query.all("dryRun");
  for (const name of ["fieldManager", "fieldValidation"])
    if (query.first(name) !== "") fields[name] = query.first(name);
  return fields;
}

function patchErrors(
  fieldManager: string,
  force: boolean | undefined,
  isApply: boolean,
): FieldError[] {
  if (isApply && fieldManager === "")
    return [required("fieldManager", "is required for apply patch")];
  if (!isApply && force !== undefined)
    return [fieldForbidden("force", "may not be specified for non-apply patch")];
  return [];
}

function dryRunErrors(dryRun: readonly string[]): FieldError[] {
  if (dryRun.every((one) => one === "All")) return [];
  const text = `[${dryRun.map((one) => JSON.stringify(one)).join(",")}]`;
  const message = `Unsupported value: ${text}: supported values: "All"`;
  return [{ type: "FieldValueNotSupported", field: "dryRun", message }];
}

/** The JSON form of metav1.DeleteOptions, as far as it is read. */
interface DeleteBody {
  readonly gracePeriodSeconds?: number | null | undefined;
  readonly preconditions?: Preconditions | null;
  readonly orphanDependents?: boolean | null | undefined;
  readonly propagationPolicy?: string | null | undefined;
  readonly dryRun?: readonly string[] | null;
}

export interface ParsedDeleteOptions {
  readonly options: RestDeleteOptions;
  /** With kind and apiVersion, for admission. */
  readonly object: Record<string, unknown>;
}

/**
 * The options of a deletion: from the body if there is one, else from the query. Throws ApiError
 * 400 and 422.
 * @param body the decoded body; undefined without one
 */
export function deleteOptionsOf(body: unknown, query: Query): ParsedDeleteOptions {
  const fields = body === undefined ? queryFields(query) : bodyFields(body);
  const options: RestDeleteOptions = {
    dryRun: (fields.dryRun ?? []).length > 0,
    gracePeriodSeconds: fields.gracePeriodSeconds ?? undefined,
    preconditions: fields.preconditions ?? undefined,
    orphanDependents: fields.orphanDependents ?? undefined,
    propagationPolicy: (fields.propagationPolicy ?? undefined) as DeletionPropagation | undefined,
  };
  const errors = validateDeleteOptions(options);
  errors.push(...dryRunErrors(fields.dryRun ?? []));
  if (errors.length > 0) throw invalid({ ...META, kind: "DeleteOptions" }, "", errors);
  return { options, object: { ...fields, kind: "DeleteOptions", apiVersion: "meta.k8s.io/v1" } };
}

function queryFields(query: Query): DeleteBody {
  const [uid, resourceVersion] = [query.first("uid"), query.first("resourceVersion")];
  const preconditions = {
    ...(uid === "" ? {} : { uid }),
    ...(resourceVersion === "" ? {} : { resourceVersion }),
  };
  return {
    gracePeriodSeconds: integer(query, "gracePeriodSeconds"),
    orphanDependents: query.has("orphanDependents") ? query.flag("orphanDependents") : undefined,
    propagationPolicy: query.first("propagationPolicy") || undefined,
    ...(query.has("dryRun") ? { dryRun: query.all("dryRun") } : {}),
    ...(Object.keys(preconditions).length > 0 ? { preconditions } : {}),
  };
}

const isText = (value: unknown): boolean => typeof value === "string";

/** Checks the types, as Go's decoder does. */
function bodyFields(body: unknown): DeleteBody {
  const wrong = (field: string): never => {
    throw badRequest(`json: cannot unmarshal the value of DeleteOptions.${field}`);
  };
  if (typeof body !== "object" || body === null || Array.isArray(body)) return wrong("(root)");
  const { kind, preconditions, ...fields } = body as DeleteBody & { kind?: unknown };
  if (kind !== undefined && kind !== "" && kind !== "DeleteOptions")
    throw badRequest("decoded object cannot be converted to DeleteOptions");
  const { gracePeriodSeconds: grace, orphanDependents, propagationPolicy, dryRun } = fields;
  if (grace !== undefined && grace !== null && !Number.isSafeInteger(grace))
    wrong("gracePeriodSeconds");
  if ((orphanDependents ?? undefined) !== undefined && typeof orphanDependents !== "boolean")
    wrong("orphanDependents");
  if ((propagationPolicy ?? undefined) !== undefined && !isText(propagationPolicy))
    wrong("propagationPolicy");
  if ((dryRun ?? undefined) !== undefined && !(Array.isArray(dryRun) && dryRun.every(isText)))
    wrong("dryRun");
  if (preconditions === undefined || preconditions === null) return fields;
  if (typeof preconditions !== "object") return wrong("preconditions");
  for (const value of Object.values(preconditions)) if (!isText(value)) wrong("preconditions");
  return { ...fields, preconditions };
}

/**
 * @param fieldManager the option; "" if it is absent
 * @param userAgent the header; "" if it is absent. Its part before the first slash counts.
 * @returns at most MAX_FIELD_MANAGER_BYTES bytes; "" stands for "unknown"
 */
export function managerOf(fieldManager: string, userAgent: string): string {
  if (fieldManager !== "") return fieldManager;
  let name = "";
  let bytes = 0;
  const [program = ""] = userAgent.split("/", 1);
  for (const char of program) {
    if (!isPrintable(char)) continue;
    bytes += utf8Length(char);
    if (bytes > MAX_FIELD_MANAGER_BYTES) break;
    name += char;
  }
  return name;
}
