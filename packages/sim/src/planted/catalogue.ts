/**
 * All bugs that runs of the simulator can be given: those around a member, and changes of its
 * source. Kubernetes' packages have theirs beside their tests (scripts/contributed.ts).
 */

import type { SourceEdit } from "@quorate/host/testing";
import { DISK_BUGS } from "./catalogue/disks.ts";
import { ETCD_BUGS } from "./catalogue/etcd.ts";
import { MEMBER_BUGS } from "./catalogue/members.ts";
import { RAFT_BUGS } from "./catalogue/raft.ts";
import { RECHECK_BUGS } from "./catalogue/rechecks.ts";
import { REQUEST_BUGS } from "./catalogue/requests.ts";
import { STORE_BUGS } from "./catalogue/store.ts";
import { USER_BUGS } from "./catalogue/users.ts";
import { WIRE_BUGS } from "./catalogue/wires.ts";
import type { WorldBug } from "./planted.ts";
import type { CatalogueBug } from "./source-edit.ts";
import { editOf } from "./source-edit.ts";

/** The seeds that show the bugs around a member (planted.ts). */
export const WORLD_BUGS: Readonly<Record<WorldBug, number>> = {
  "votes-not-synced": 3,
  "commit-without-quorum": 1,
  "stale-read": 3,
  "apply-twice": 1,
  "lost-batch": 1,
  "watch-skips": 1,
  "lease-not-renewed": 4,
};

/** Changes of the source, by name. */
export const SOURCE_BUGS: Readonly<Record<string, CatalogueBug>> = {
  ...RAFT_BUGS,
  ...DISK_BUGS,
  ...STORE_BUGS,
  ...REQUEST_BUGS,
  ...RECHECK_BUGS,
  ...MEMBER_BUGS,
  ...WIRE_BUGS,
  ...USER_BUGS,
  ...ETCD_BUGS,
};

/** The bugs that every build looks for, each with the seed that shows it. */
export const HUNTED_BUGS: ReadonlyMap<string, number> = new Map([
  ...Object.entries(WORLD_BUGS),
  ...Object.entries(SOURCE_BUGS).flatMap(([name, { seed }]) =>
    seed === undefined ? [] : [[name, seed] as const],
  ),
]);

/** The bug of a name, if it is one of the source. Throws an Error if there is none of that name. */
export function sourceBug(name: string): CatalogueBug | undefined {
  if (!(name in WORLD_BUGS) && !(name in SOURCE_BUGS))
    throw new Error(
      `there is no bug ${name}; they are ${[...HUNTED_BUGS.keys()].join(", ")}, and those of ./dev mutants --list`,
    );
  return SOURCE_BUGS[name];
}

/** What plants the bug of a name in modules; undefined for none, and for one around a member. */
export function editFor(name: string | undefined): SourceEdit | undefined {
  const bug = name === undefined ? undefined : sourceBug(name);
  return bug === undefined ? undefined : editOf(bug);
}
