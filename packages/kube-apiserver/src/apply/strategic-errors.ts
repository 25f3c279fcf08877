/** What the parts of strategic merges share. */
import { ApiError } from "@quorate/kube-storage";
import { goValue } from "./go-text.ts";
import type { Fields } from "./typed-value.ts";

/** The field of a map that says what to do with it. */
export const DIRECTIVE = "$patch";

/** A patch that Kubernetes refuses with an error that is no status: HTTP 500 with its text. */
export function patchError(message: string): ApiError {
  return new ApiError(500, "", message);
}

export function badPatchType(directive: unknown, patch: Fields): ApiError {
  return patchError(`unknown patch type: ${goValue(directive)} in map: ${goValue(patch)}`);
}
