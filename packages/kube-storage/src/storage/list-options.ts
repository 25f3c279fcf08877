/** What a list's parameters ask of the cluster (apiserver: ValidateListOptions). */
import { decodeContinue } from "./continue-token.ts";
import { invalidOptions, textOf } from "./errors.ts";
import type { ListOptions, Versioner } from "./interface.ts";

export interface ListPlan {
  /** Read at this revision; 0 for the latest. */
  readonly revision: number;
  /** The first key of this page. */
  readonly startKey: string;
}

/** The parsed parameter. Throws StorageError "InvalidOptions". */
function parsedRevision(versioner: Versioner, key: string, text: string): number {
  try {
    return versioner.parse(text);
  } catch (error) {
    throw invalidOptions(key, textOf(error));
  }
}

/** @param keyPrefix as in the store */
export function listPlan(keyPrefix: string, versioner: Versioner, options: ListOptions): ListPlan {
  const { predicate, resourceVersion, resourceVersionMatch, recursive } = options;
  if (recursive && predicate.continueToken !== "") {
    const { startKey, revision } = decodeContinue(predicate.continueToken, keyPrefix);
    if (resourceVersion !== "" && resourceVersion !== "0")
      throw invalidOptions(
        keyPrefix,
        "specifying resource version is not allowed when using continue",
      );
    return { startKey, revision: Math.max(revision, 0) };
  }
  const first = { startKey: keyPrefix, revision: 0 };
  if (resourceVersion === "") return first;
  const revision = parsedRevision(versioner, keyPrefix, resourceVersion);
  switch (resourceVersionMatch) {
    case "Exact":
      return { ...first, revision };
    case "NotOlderThan":
      return first;
    case "":
      // Before there was resourceVersionMatch, a limit made the revision exact.
      return recursive && predicate.limit > 0 ? { ...first, revision } : first;
  }
}

/** The least revision that the response must have; 0 for any. */
export function minimumRevision(versioner: Versioner, key: string, text: string): number {
  return text === "" ? 0 : parsedRevision(versioner, key, text);
}
