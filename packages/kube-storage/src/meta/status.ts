/**
 * Errors as metav1.Status (apimachinery: api/errors/errors.go). client-go decides by `reason`,
 * `code` and `details.causes`; people read `message`.
 */
import { CodedError, quoteText as goQuote } from "@quorate/proto";
import { resourceName } from "./kinds.ts";

export interface StatusCause {
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly field?: string | undefined;
}

export interface StatusDetails {
  readonly name?: string | undefined;
  readonly group?: string | undefined;
  readonly kind?: string | undefined;
  readonly uid?: string | undefined;
  readonly causes?: readonly StatusCause[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** metav1.Status. */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  /** `continue` goes on with an expired list, at a newer revision. */
  readonly metadata: { readonly continue?: string };
  readonly status: "Success" | "Failure";
  readonly message?: string | undefined;
  readonly reason?: string | undefined;
  readonly details?: StatusDetails | undefined;
  /** The HTTP status; absent in a "Success". */
  readonly code?: number | undefined;
}

/** A failed request. Its `code` is the reason of the Status, such as "NotFound", or "". */
export class ApiError extends CodedError<string> {
  readonly httpStatus: number;
  readonly details: StatusDetails | undefined;
  /** For Status.metadata.continue; "" for none. */
  readonly continueToken: string;

  constructor(
    httpStatus: number,
    reason: string,
    message: string,
    details?: StatusDetails,
    continueToken = "",
  ) {
    super("ApiError", reason, message);
    this.httpStatus = httpStatus;
    this.details = details;
    this.continueToken = continueToken;
  }

  /** What the client receives. */
  get status(): Status {
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: this.continueToken === "" ? {} : { continue: this.continueToken },
      status: "Failure",
      message: this.message,
      reason: this.code === "" ? undefined : this.code,
      details: this.details,
      code: this.httpStatus,
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

export function notFound(resource: Named, name: string): ApiError {
  const message = `${resourceName(resource)} ${goQuote(name)} not found`;
  return new ApiError(404, "NotFound", message, detailsOf(resource, name));
}

export function alreadyExists(resource: Named, name: string): ApiError {
  const message = `${resourceName(resource)} ${goQuote(name)} already exists`;
  return new ApiError(409, "AlreadyExists", message, detailsOf(resource, name));
}

/** @param why such as "the object has been modified; …" */
export function conflict(resource: Named, name: string, why: string): ApiError {
  const of = `${resourceName(resource)} ${goQuote(name)}`;
  const message = `Operation cannot be fulfilled on ${of}: ${why}`;
  return new ApiError(409, "Conflict", message, detailsOf(resource, name));
}

/** The resourceVersion is compacted: the client has to list again. */
export function expired(message: string): ApiError {
  return new ApiError(410, "Expired", message);
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, "BadRequest", message);
}

export function forbidden(resource: Named, name: string, why: string): ApiError {
  const of = name === "" ? resourceName(resource) : `${resourceName(resource)} ${goQuote(name)}`;
  const unnamed = resource.group === "" && resource.resource === "";
  const message = unnamed ? `forbidden: ${why}` : `${of} is forbidden: ${why}`;
  return new ApiError(403, "Forbidden", message, detailsOf(resource, name));
}

export function internalError(why: string): ApiError {
  return new ApiError(500, "InternalError", `Internal error occurred: ${why}`, {
    causes: [{ message: why }],
  });
}

/** A resourceVersion that is newer than the store: retry later. */
export function tooLargeResourceVersion(wanted: number, present: number): ApiError {
  const message = `Timeout: Too large resource version: ${wanted}, current: ${present}`;
  return new ApiError(504, "Timeout", message, {
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
    | "FieldValueTooFew"
    | "FieldValueTooShort"
    | "FieldValueTypeInvalid"
    | "FieldValueNotFound"
    | "InternalError";
  /** Such as "metadata.name" or "spec.ports[0].port". */
  readonly field: string;
  /** The text without the field, such as 'Required value: name or generateName is required'. */
  readonly message: string;
}

/** "[a, b]" of several texts, one text alone; each once (util/errors/errors.go: Aggregate). */
export function aggregateText(texts: readonly string[]): string {
  const distinct = [...new Set(texts)];
  const [first, second] = distinct;
  return first !== undefined && second === undefined ? first : `[${distinct.join(", ")}]`;
}

/** Errors that one answer names; Kubernetes names all. */
export const MAX_FIELD_ERRORS = 100;
/** Characters of an object's name that an answer quotes. */
const MAX_SHOWN_NAME = 1024;

/** The object breaks rules of its kind. */
export function invalid(
  kind: { readonly group: string; readonly kind: string },
  name: string,
  errors: readonly FieldError[],
): ApiError {
  const named = errors.slice(0, MAX_FIELD_ERRORS);
  const texts = named.map((error) => `${error.field}: ${error.message}`);
  if (errors.length > named.length) texts.push(`and ${errors.length - named.length} more`);
  const of = kind.group === "" ? kind.kind : `${kind.kind}.${kind.group}`;
  const shown = name.slice(0, MAX_SHOWN_NAME);
  return new ApiError(
    422,
    "Invalid",
    `${of} ${goQuote(shown)} is invalid: ${aggregateText(texts)}`,
    {
      name: shown || undefined,
      group: kind.group || undefined,
      kind: kind.kind,
      causes: named.map(({ type, field, message }) => ({ reason: type, message, field })),
    },
  );
}

function kindDetails({ group, resource }: Named) {
  return { group: group || undefined, kind: resource || undefined };
}

/** 401: no credentials, or none that are valid. */
export function unauthorized(why = "Unauthorized"): ApiError {
  return new ApiError(401, "Unauthorized", why);
}

/** 405: the resource does not have the verb. @param action such as "create" */
export function methodNotSupported(resource: Named, action: string): ApiError {
  const message = `${action} is not supported on resources of kind ${goQuote(resourceName(resource))}`;
  return new ApiError(405, "MethodNotAllowed", message, kindDetails(resource));
}

/** 406: none of the media types that the client accepts can be written. */
export function notAcceptable(accepted: readonly string[]): ApiError {
  const list = accepted.join(", ");
  const message = `only the following media types are accepted: ${list}`;
  return new ApiError(406, "NotAcceptable", message);
}

/** 415: the body is in none of the media types that can be read. */
export function unsupportedMediaType(accepted: readonly string[]): ApiError {
  const list = accepted.join(", ");
  const message = `the body of the request was in an unknown format - accepted media types include: ${list}`;
  return new ApiError(415, "UnsupportedMediaType", message);
}

/** 413: the body, or what a patch makes of it, is too large. */
export function requestEntityTooLarge(why: string): ApiError {
  const message = `Request entity too large: ${why}`;
  return new ApiError(413, "RequestEntityTooLarge", message);
}

/** 503: the server cannot handle the request now. */
export function serviceUnavailable(why: string): ApiError {
  return new ApiError(503, "ServiceUnavailable", why);
}

/** 504: the request's time is over; the operation may still complete. */
export function timeout(why: string, retryAfterSeconds = 0): ApiError {
  const details = { retryAfterSeconds: retryAfterSeconds || undefined };
  return new ApiError(504, "Timeout", `Timeout: ${why}`, details);
}

/** 500 with reason ServerTimeout: the operation did not complete, the client should retry. */
export function serverTimeout(
  resource: Named,
  operation: string,
  retryAfterSeconds: number,
): ApiError {
  const message =
    `The ${operation} operation against ${resourceName(resource)} could not be completed at ` +
    "this time, please try again.";
  const details = { ...kindDetails(resource), name: operation || undefined, retryAfterSeconds };
  return new ApiError(500, "ServerTimeout", message, details);
}

/** 409: names made from generateName were all taken. */
export function generateNameConflict(resource: Named, name: string): ApiError {
  const message =
    `${resourceName(resource)} ${goQuote(name)} already exists, the server was not able to ` +
    "generate a unique name for the object";
  const details = { ...kindDetails(resource), name, retryAfterSeconds: 1 };
  return new ApiError(409, "AlreadyExists", message, details);
}
