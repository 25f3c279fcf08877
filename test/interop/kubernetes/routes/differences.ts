/** Where our answers differ from kube-apiserver's, and why; docs/apiserver-differences.md has them. */
import type { RouteDifference } from "./kept.ts";

export interface AcceptedDifference {
  readonly why: string;
  is(difference: RouteDifference, method: string, path: string): boolean;
}

export const accepted: readonly AcceptedDifference[] = [];
