/**
 * Which lists the cache serves, and from which revision (apiserver: pkg/storage/cacher/
 * delegator.go and delegator/interface.go):
 *
 *     resourceVersion    match          limit   continue    read
 *     "" or any          ""             any     at N        exact N
 *     "" or any          ""             any     latest      consistent
 *     ""                 ""             any     -           consistent
 *     "0"                "", NotOlder   any     -           latest, all pages in one
 *     N                  "", NotOlder   -       -           latest, not older than N
 *     N                  ""             > 0     -           exact N
 *     N                  Exact          any     -           exact N
 */
import { decodeContinue } from "../storage/continue-token.ts";
import type { ListOptions, Versioner } from "../storage/interface.ts";
import { listPlan } from "../storage/list-options.ts";

export interface ListRoute {
  readonly read: "consistent" | "latest" | "exact";
  /** Exact: the revision; latest: the least one; consistent: 0. */
  readonly revision: number;
  /** The first key of the page. */
  readonly startKey: string;
}

/**
 * How the cache reads this list; undefined where the store below has to. Throws StorageError for
 * options that contradict each other.
 * @param key of the list; a prefix ends with "/"
 */
export function listRoute(
  key: string,
  versioner: Versioner,
  options: ListOptions,
): ListRoute | undefined {
  const plan = listPlan(key, versioner, options);
  const { resourceVersion, resourceVersionMatch, predicate, recursive } = options;
  const exact = (revision: number, startKey = key): ListRoute | undefined =>
    recursive ? { read: "exact", revision, startKey } : undefined;
  const revision = versioner.parse(resourceVersion);
  if (resourceVersionMatch === "Exact") return exact(revision);
  if (resourceVersionMatch === "NotOlderThan") return { read: "latest", revision, startKey: key };
  if (predicate.continueToken !== "") {
    if (!recursive) return undefined;
    const { startKey } = decodeContinue(predicate.continueToken, key);
    if (plan.revision > 0) return exact(plan.revision, startKey);
    return { read: "consistent", revision: 0, startKey };
  }
  if (predicate.limit > 0 && revision > 0) return exact(revision);
  if (resourceVersion === "") return { read: "consistent", revision: 0, startKey: key };
  return { read: "latest", revision, startKey: key };
}
