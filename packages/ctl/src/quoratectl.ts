/** quoratectl: the command line for a running cluster. */
import { alarmCommand } from "./commands/alarm.ts";
import { backupCommand } from "./commands/backup.ts";
import { compactionCommand } from "./commands/compaction.ts";
import { completionCommand } from "./commands/completion.ts";
import { defragCommand } from "./commands/defrag.ts";
import { delCommand } from "./commands/del.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { endpointCommand } from "./commands/endpoint.ts";
import { getCommand } from "./commands/get.ts";
import { helpCommand } from "./commands/help.ts";
import { memberCommand } from "./commands/member.ts";
import { moveLeaderCommand } from "./commands/move-leader.ts";
import { putCommand } from "./commands/put.ts";
import { snapshotCommand } from "./commands/snapshot.ts";
import { topCommand } from "./commands/top.ts";
import { txnCommand } from "./commands/txn.ts";
import { versionCommand } from "./commands/version.ts";
import { globalFlags } from "./globals.ts";
import type { Program } from "./program.ts";

export const quoratectl: Program = {
  name: "quoratectl",
  short: "quoratectl: talks to a cluster of Quorate or etcd members.",
  groups: [
    { title: "Key-value commands", commands: [compactionCommand, delCommand, getCommand, putCommand, txnCommand] },
    {
      title: "Cluster maintenance commands",
      commands: [
        alarmCommand,
        backupCommand,
        defragCommand,
        doctorCommand,
        endpointCommand,
        memberCommand,
        moveLeaderCommand,
        snapshotCommand,
        topCommand,
      ],
    },
    { title: "Utility commands", commands: [completionCommand("quoratectl"), helpCommand, versionCommand("quoratectl")] },
  ],
  globals: globalFlags,
  envPrefix: "ETCDCTL",
  otherVariables: new Set(["ETCDCTL_API", "ETCDCTL_WATCH_KEY", "ETCDCTL_WATCH_RANGE_END"]),
};
