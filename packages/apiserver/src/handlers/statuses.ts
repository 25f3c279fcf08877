/** Errors that only handlers raise (apimachinery: api/errors/errors.go; handlers/negotiation). */
import { resourceName } from "../meta/kinds.ts";
import { ApiError } from "../meta/status.ts";

/** A verb that the resource does not have. */
export function methodNotSupported(
  of: { group: string; resource: string },
  verb: string,
): ApiError {
  const message = `${verb} is not supported on resources of kind "${resourceName(of)}"`;
  const details = { group: of.group || undefined, kind: of.resource };
  return new ApiError(405, "MethodNotAllowed", message, details);
}

export function unauthorized(): ApiError {
  return new ApiError(401, "Unauthorized", "Unauthorized");
}

/** @param limitBytes of a request's body */
export function bodyTooLarge(limitBytes: number): ApiError {
  const message = `Request entity too large: limit is ${limitBytes}`;
  return new ApiError(413, "RequestEntityTooLarge", message);
}

/** The request's time is over. */
export function requestTimeout(): ApiError {
  const message = "Timeout: request did not complete within the allotted timeout";
  return new ApiError(504, "Timeout", message, {});
}

export function tooManyRequests(retryAfterSeconds: number): ApiError {
  const message = "Too many requests, please try again later.";
  return new ApiError(429, "TooManyRequests", message, { retryAfterSeconds });
}

export function serviceUnavailable(message: string, retryAfterSeconds?: number): ApiError {
  const details = retryAfterSeconds === undefined ? undefined : { retryAfterSeconds };
  return new ApiError(503, "ServiceUnavailable", message, details);
}

export function notAcceptable(accepted: readonly string[]): ApiError {
  const message = `only the following media types are accepted: ${accepted.join(", ")}`;
  return new ApiError(406, "NotAcceptable", message);
}

/** A transformation that is not possible, such as a list as PartialObjectMetadata. */
export function notConvertible(message: string): ApiError {
  return new ApiError(406, "NotAcceptable", message);
}

export function unsupportedMediaType(accepted: readonly string[]): ApiError {
  const list = accepted.join(", ");
  const message = `the body of the request was in an unknown format - accepted media types include: ${list}`;
  return new ApiError(415, "UnsupportedMediaType", message);
}

/** A resource that is not served (apiserver: a 404 of the generic kind). */
export function resourceNotServed(): ApiError {
  return new ApiError(404, "NotFound", "the server could not find the requested resource", {});
}
