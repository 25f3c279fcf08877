/**
 * The client's error for an error of the storage (apiserver: pkg/storage/errors/storage.go and
 * apimachinery's api/errors).
 */
import type { GroupVersionResource } from "../meta/kinds.ts";
import {
  ApiError,
  alreadyExists,
  badRequest,
  conflict,
  expired,
  internalError,
  notFound,
  serverTimeout,
  tooLargeResourceVersion,
} from "../meta/status.ts";
import { StorageError } from "./errors.ts";

/** What the caller did. */
export type StorageVerb = "get" | "list" | "watch" | "create" | "update" | "delete";

const RETRY_AFTER_SECONDS = 2;

type Resource = Pick<GroupVersionResource, "group" | "resource">;

function timeoutError(message: string): ApiError {
  return new ApiError(504, "Timeout", `Timeout: ${message}`);
}

/**
 * Makes the ApiError of a failed call.
 * @param error what the call rejected with; other than StorageError it is returned as it is
 * @param name of the object; "" for lists
 */
export function interpretStorageError(
  error: unknown,
  verb: StorageVerb,
  resource: Resource,
  name: string,
): unknown {
  if (!(error instanceof StorageError)) return error;
  switch (error.code) {
    case "KeyNotFound":
      return verb === "create" ? internalError(error.message) : notFound(resource, name);
    case "KeyExists":
      return verb === "create"
        ? alreadyExists(resource, name)
        : conflict(resource, name, error.message);
    case "ResourceVersionConflicts":
    case "InvalidObj":
      return conflict(resource, name, error.message);
    case "Unreachable":
      return serverTimeout(resource, verb, RETRY_AFTER_SECONDS);
    case "Timeout":
      return verb === "list"
        ? serverTimeout(resource, verb, RETRY_AFTER_SECONDS)
        : timeoutError(error.message);
    case "CorruptObj":
    case "Internal":
      return internalError(error.message);
    case "ResourceVersionOnCreate":
      // Kubernetes has no reason for this one.
      return new ApiError(500, "", error.message);
    case "InvalidOptions":
    case "InvalidContinueToken":
      return badRequest(error.message);
    case "TooOldResourceVersion":
      return error.continueToken === ""
        ? expired(error.message)
        : new ApiError(410, "Expired", error.message, undefined, error.continueToken);
    case "TooLargeResourceVersion":
      return tooLargeResourceVersion(error.resourceVersion, error.currentResourceVersion);
  }
}
