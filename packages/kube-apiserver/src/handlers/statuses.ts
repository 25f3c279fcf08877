/** Errors that only handlers raise, beside those of meta/status.ts. */
import { ApiError, badRequest, requestEntityTooLarge, timeout } from "@quorate/kube-storage";

/** @param limitBytes of a request's body */
export function bodyTooLarge(limitBytes: number): ApiError {
  return requestEntityTooLarge(`limit is ${limitBytes}`);
}

/** The request's time is over. */
export function requestTimeout(): ApiError {
  return timeout("request did not complete within the allotted timeout");
}

/** Too many requests of this user, or of all at this priority, wait. */
export function overloaded(retryAfterSeconds: number): ApiError {
  const message = "Too many requests, please try again later.";
  return new ApiError(429, "TooManyRequests", message, { retryAfterSeconds });
}

/** A transformation that is not possible, such as a list as PartialObjectMetadata. */
export function notConvertible(message: string): ApiError {
  return new ApiError(406, "NotAcceptable", message);
}

/** A resource that is not served (apiserver: a 404 of the generic kind). */
export function resourceNotServed(): ApiError {
  return new ApiError(404, "NotFound", "the server could not find the requested resource", {});
}

/** A path that is served, but not with this method. */
export function methodNotAllowed(): ApiError {
  const message = "the server does not allow this method on the requested resource";
  return new ApiError(405, "MethodNotAllowed", message, {});
}

/** A path in whose form a name stands has none. */
export function nameRequired(): ApiError {
  return badRequest("name must be provided");
}

/** A path that cannot be read. @param problem what is wrong with it */
export function unreadablePath(path: string, problem: string): ApiError {
  return badRequest(`unable to determine kind and namespace from url, ${path}: ${problem}`);
}
