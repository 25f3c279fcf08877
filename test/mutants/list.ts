/**
 * All mutants: the subtle ones, those of what requests mean, the simulator's planted bugs that are
 * changes of the source, those of Raft's random clusters, and those that packages have beside their
 * tests.
 */
import { SOURCE_BUGS, type SourceBug } from "@quorate/sim";
import { contributed } from "../../scripts/contributed.ts";
import { FORCED } from "./forced.ts";
import type { Mutant } from "./mutant.ts";
import { mutants as raftMutants } from "./raft.ts";
import { RECHECKED } from "./rechecks.ts";
import { REQUESTS } from "./requests.ts";
import { SUBTLE } from "./subtle.ts";

const planted = Object.entries(SOURCE_BUGS as Readonly<Record<string, SourceBug>>).map(
  ([name, bug]): Mutant => ({
    ...bug,
    name,
    tests: [],
    sim: FORCED[name as keyof typeof FORCED] ?? "default",
    maxSeeds: 500,
  }),
);

const ofRaft = raftMutants.map(
  ({ name, file, before, after, tests = "*.test.ts" }): Mutant => ({
    name,
    file: `raft/src/${file}`,
    before,
    after,
    tests: [`packages/raft/test/${tests}`],
    sim: "default",
    maxSeeds: 40,
  }),
);

const ofPackages = await contributed<{ MUTANTS: readonly Mutant[] }>("mutants");

export const MUTANTS: readonly Mutant[] = [
  ...SUBTLE,
  ...REQUESTS,
  ...RECHECKED,
  ...planted,
  ...ofRaft,
  ...ofPackages.flatMap((one) => one.MUTANTS),
];
