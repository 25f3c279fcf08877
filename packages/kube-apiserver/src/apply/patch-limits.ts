/** Bounds of patches and of what they produce. */
import { ApiError, badRequest, fitsDepth, MAX_JSON_DEPTH } from "@quorate/kube-storage";

/** Operations of a JSON patch (apiserver: endpoints/handlers/patch.go). */
export const MAX_JSON_PATCH_OPERATIONS = 10_000;

/** Bytes that the copy operations of one JSON patch may add (apiserver: JSONPatchMaxCopyBytes). */
export const MAX_JSON_PATCH_COPY_BYTES = 3 * 1024 * 1024;

/**
 * Items of lists that the operations of one JSON patch may move to other places: a text of 450 KB
 * could else move 10,000 times the half million items of a list.
 */
export const MAX_JSON_PATCH_MOVED_ITEMS = 10_000_000;

/**
 * Refuses values that are nested deeper than MAX_JSON_DEPTH.
 * @throws ApiError 400
 */
export function checkDepth(value: unknown): void {
  if (!fitsDepth(value, MAX_JSON_DEPTH)) {
    throw badRequest(`the object is nested deeper than ${MAX_JSON_DEPTH} levels`);
  }
}

/** A patch that does not apply. Kubernetes hides the reason. */
export function unprocessable(): ApiError {
  const message = "the server rejected our request due to an error in our request";
  return new ApiError(422, "Invalid", message, {});
}
