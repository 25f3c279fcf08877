/**
 * Errors as metav1.Status (apimachinery: api/errors/errors.go). client-go decides by `reason`,
 * `code` and `details.causes`; people read `message`.
 */
import { resourceName } from "./kinds.ts";

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** metav1.Status. */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Record<string, never>;
  readonly status: "Success" | "Failure";
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code: number;
}

/** A failed request; what the client gets is `status`. */
export class StatusError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.name = "StatusError";
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  get status(): Status {
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: this.message,
      reason: this.reason === "" ? undefined : this.reason,
      details: this.details,
      code: this.code,
    };
  }
}

/** A resource as errors name it. */
interface Named {
  readonly group: string;
  readonly resource: string;
}

function detailsOf({ group, resource }: Named, name: string): StatusDetails {
  return { name: name || undefined, group: group || undefined, kind: resource };
}

export function notFound(resource: Named, name: string): StatusError {
  const message = `${resourceName(resource)} "${name}" not found`;
  return new StatusError(404, "NotFound", message, detailsOf(resource, name));
}

export function alreadyExists(resource: Named, name: string): StatusError {
  const message = `${resourceName(resource)} "${name}" already exists`;
  return new StatusError(409, "AlreadyExists", message, detailsOf(resource, name));
}

/** @param why such as "the object has been modified; …" */
export function conflict(resource: Named, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${resourceName(resource)} "${name}": ${why}`;
  return new StatusError(409, "Conflict", message, detailsOf(resource, name));
}

/** The resourceVersion is compacted: the client has to list again. */
export function expired(message: string): StatusError {
  return new StatusError(410, "Expired", message);
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}

export function forbidden(resource: Named, name: string, why: string): StatusError {
  const of = name === "" ? resourceName(resource) : `${resourceName(resource)} "${name}"`;
  const message = `${of} is forbidden: ${why}`;
  return new StatusError(403, "Forbidden", message, detailsOf(resource, name));
}

export function internalError(why: string): StatusError {
  return new StatusError(500, "InternalError", `Internal error occurred: ${why}`, {
    causes: [{ message: why }],
  });
}

/** A resourceVersion that is newer than the store: retry later. */
export function tooLargeResourceVersion(wanted: number, present: number): StatusError {
  const message = `Timeout: Too large resource version: ${wanted}, current: ${present}`;
  return new StatusError(504, "Timeout", message, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

/** One thing that is wrong with a field (apimachinery: util/validation/field/errors.go). */
export interface FieldError {
  readonly type:
    | "FieldValueRequired"
    | "FieldValueInvalid"
    | "FieldValueDuplicate"
    | "FieldValueNotSupported"
    | "FieldValueForbidden"
    | "FieldValueTooLong"
    | "FieldValueTooMany"
    | "FieldValueTypeInvalid"
    | "FieldValueNotFound"
    | "InternalError";
  /** Such as "metadata.name" or "spec.ports[0].port". */
  readonly field: string;
  /** The whole text without the field, such as 'Required value: name or generateName is required'. */
  readonly message: string;
}

/** The object breaks rules of its kind. */
export function invalid(
  kind: { readonly group: string; readonly kind: string },
  name: string,
  errors: readonly FieldError[],
): StatusError {
  const texts = errors.map((error) => `${error.field}: ${error.message}`);
  const all = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const of = kind.group === "" ? kind.kind : `${kind.kind}.${kind.group}`;
  return new StatusError(422, "Invalid", `${of} "${name}" is invalid: ${all}`, {
    name: name || undefined,
    group: kind.group || undefined,
    kind: kind.kind,
    causes: errors.map(({ type, field, message }) => ({ reason: type, message, field })),
  });
}
