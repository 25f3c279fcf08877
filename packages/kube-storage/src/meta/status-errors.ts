/** More errors with Kubernetes' codes and texts (apimachinery: api/errors/errors.go). */
import { quoteText as goQuote } from "@quorate/proto";
import { resourceName } from "./kinds.ts";
import { ApiError } from "./status.ts";

interface Named {
  readonly group: string;
  readonly resource: string;
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

/** 410: what the client asked for is gone, and no newer place is known. */
export function gone(message: string): ApiError {
  return new ApiError(410, "Gone", message);
}
