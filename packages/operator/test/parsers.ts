/** The operator's part of the table of test/linear. */
import type { Listed } from "../../../test/linear/listed.ts";

export const LISTED: readonly Listed[] = [];

export const LEFT_OUT: Readonly<Record<string, string>> = {
  "packages/operator/src/":
    "objects of the API server, which has bounded them, and certificates that were made here",
  "packages/operator/node/": "the operator's own files and flags, and JSON of the API server",
};
