/** Random cases, each from its seed. */

import { Dice } from "../../../../../test/support/random.ts";
import type { PatchCase } from "./evaluate.ts";
import { type HistoryCase, historyCase } from "./histories.ts";
import { jsonPatchCase, mergePatchCase, strategicMergeCase } from "./random-patches.ts";
import { randomFieldsV1 } from "./random-values.ts";

export type Case = PatchCase | HistoryCase;

const MAKERS = {
  "json-patch": jsonPatchCase,
  "merge-patch": mergePatchCase,
  "strategic-merge": strategicMergeCase,
  fields: (dice: Dice) => ({ type: "fields", document: randomFieldsV1(dice), patch: null }),
  history: historyCase,
} as const;

export type CaseType = keyof typeof MAKERS;

export const CASE_TYPES = Object.keys(MAKERS) as CaseType[];

/** The case of a seed, as it is read from JSON. */
export function caseOf(type: CaseType, seed: number): Case {
  return JSON.parse(JSON.stringify(MAKERS[type](new Dice(seed)))) as Case;
}

/** A line of fixtures/reference.jsonl: what the reference made of a case. */
export interface Fixture {
  readonly type: CaseType;
  readonly seed: number;
  readonly result: unknown;
}
