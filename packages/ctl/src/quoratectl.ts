/** quoratectl: the command line for a running cluster. */

import type { Program } from "@quorate/cli";
import { alarmCommand } from "./commands/alarm.ts";
import { authCommand } from "./commands/auth.ts";
import { backupCommand } from "./commands/backup.ts";
import { checkCommand } from "./commands/check.ts";
import { compactionCommand } from "./commands/compaction.ts";
import { completionCommand } from "./commands/completion.ts";
import { defragCommand } from "./commands/defrag.ts";
import { delCommand } from "./commands/del.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { downgradeCommand } from "./commands/downgrade.ts";
import { electCommand } from "./commands/elect.ts";
import { endpointCommand } from "./commands/endpoint.ts";
import { getCommand } from "./commands/get.ts";
import { helpCommand, optionsCommand, versionCommand } from "./commands/help.ts";
import { leaseCommand } from "./commands/lease.ts";
import { lockCommand } from "./commands/lock.ts";
import { makeMirrorCommand } from "./commands/make-mirror.ts";
import { memberCommand } from "./commands/member.ts";
import { migrateClusterCommand } from "./commands/migrate.ts";
import { moveLeaderCommand } from "./commands/move-leader.ts";
import { putCommand } from "./commands/put.ts";
import { recoverCommand } from "./commands/recover.ts";
import { roleCommand } from "./commands/role.ts";
import { snapshotCommand } from "./commands/snapshot.ts";
import { topCommand } from "./commands/top.ts";
import { txnCommand } from "./commands/txn.ts";
import { userCommand } from "./commands/user.ts";
import { watchCommand } from "./commands/watch.ts";
import { usageHint } from "./connect/advice.ts";
import { globalFlags } from "./connect/globals.ts";

export const quoratectl: Program = {
  name: "quoratectl",
  short: "quoratectl: command line client of Quorate and etcd clusters.",
  usageHint,
  groups: [
    {
      title: "Key-value commands",
      commands: [
        compactionCommand,
        delCommand,
        getCommand,
        leaseCommand,
        putCommand,
        txnCommand,
        watchCommand,
      ],
    },
    {
      title: "Cluster maintenance commands",
      commands: [
        alarmCommand,
        backupCommand,
        defragCommand,
        doctorCommand,
        downgradeCommand,
        endpointCommand,
        memberCommand,
        migrateClusterCommand,
        moveLeaderCommand,
        recoverCommand,
        snapshotCommand,
        topCommand,
      ],
    },
    { title: "Concurrency commands", commands: [electCommand, lockCommand] },
    { title: "Authentication commands", commands: [authCommand, roleCommand, userCommand] },
    {
      title: "Utility commands",
      commands: [
        checkCommand,
        completionCommand("quoratectl"),
        helpCommand,
        makeMirrorCommand,
        optionsCommand,
        versionCommand("quoratectl"),
      ],
    },
  ],
  globals: globalFlags,
  envPrefix: "ETCDCTL",
  otherVariables: new Set(["ETCDCTL_API", "ETCDCTL_WATCH_KEY", "ETCDCTL_WATCH_RANGE_END"]),
  // etcdctl had them before 3.6.
  elsewhere: new Map(
    ["snapshot restore", "snapshot status"].map((name) => [name, `quorateutl ${name}`]),
  ),
};
