/**
 * All mutants: the subtle ones, those of what requests mean, the simulator's planted bugs that are
 * changes of the source, those of Raft's random clusters, and those of Kubernetes' storage and
 * access control.
 */
import { SOURCE_BUGS, type SourceBug } from "@quorate/sim";
import { FORCED } from "./forced.ts";
import { KUBERNETES_POLICY } from "./kubernetes-policy.ts";
import { KUBERNETES_STORAGE } from "./kubernetes-storage.ts";
import type { Mutant } from "./mutant.ts";
import { mutants as raftMutants } from "./raft.ts";
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

export const MUTANTS: readonly Mutant[] = [
  ...SUBTLE,
  ...REQUESTS,
  ...planted,
  ...ofRaft,
  ...KUBERNETES_STORAGE,
  ...KUBERNETES_POLICY,
];
