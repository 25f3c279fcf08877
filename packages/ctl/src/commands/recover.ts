/**
 * quoratectl recover: a cluster whose quorum is lost for good goes on with the data of one member.
 * Not in etcdctl. The operator does the same in Kubernetes (packages/operator, plan-recovery.ts).
 */
import type { CommandBody } from "@quorate/cli";
import { boolFlag, listFlag, textFlag } from "@quorate/cli";

export const recoverCommand: CommandBody = {
  long: `Goes on with the data of one member of a cluster that has lost its quorum for good: finds the one that
has the highest term and index, shows what would be lost, and, with --auto, makes it the only member.

Give the data directories of all members that are left, stopped, on this machine (copies will do), and
name those whose data are lost. Without --data-dir the members at --endpoints are asked, and nothing
is changed. What is ambiguous is refused: a member of which nothing is known may have more.`,
  flags: {
    auto: boolFlag("do it; without it nothing is changed"),
    "data-dir": listFlag(
      "data directory of a stopped member that is left; DATA-DIR=WAL-DIR for a log outside of it",
    ),
    lost: listFlag("name or id of a member whose data are lost"),
    survivor: textFlag("name or id of the member to go on with, where that is ambiguous"),
  },
  run: async (invocation) => {
    const { runRecover } = await import("../recover/run.ts");
    await runRecover(invocation);
  },
};
