/**
 * quoratectl: the command line for a running cluster. What help of the program says of a command is
 * here; the rest is loaded when it is called, so that `get` loads nothing of the others.
 */

import type { Program } from "@quorate/cli";
import { completionCommand } from "./commands/completion.ts";
import { helpCommand, optionsCommand, versionCommand } from "./commands/help.ts";
import { usageHint } from "./connect/advice.ts";
import { globalFlags } from "./connect/global-flags.ts";

export const quoratectl: Program = {
  name: "quoratectl",
  short: "quoratectl: command line client of Quorate and etcd clusters.",
  usageHint,
  groups: [
    {
      title: "Key-value commands",
      commands: [
        {
          use: "compaction [options] <revision>",
          short: "Compacts the history before a revision",
          load: async () => (await import("./commands/compaction.ts")).compactionCommand,
        },
        {
          use: "del [options] <key> [range_end]",
          short: "Deletes a key or a range of keys, without range_end",
          load: async () => (await import("./commands/del.ts")).delCommand,
        },
        {
          use: "get [options] <key> [range_end]",
          short: "Gets a key or a range of keys",
          load: async () => (await import("./commands/get.ts")).getCommand,
        },
        {
          use: "lease <subcommand>",
          short: "Commands about leases, which limit the life of keys",
          load: async () => (await import("./commands/lease.ts")).leaseCommand,
        },
        {
          use: "put [options] <key> <value>",
          short: "Puts a key and its value into the store",
          load: async () => (await import("./commands/put.ts")).putCommand,
        },
        {
          use: "txn [options]",
          short: "Runs several requests as one transaction",
          load: async () => (await import("./commands/txn.ts")).txnCommand,
        },
        {
          use: "watch [options] [key or prefix] [range_end] [--] [exec-command arg1 arg2 ...]",
          short: "Prints changes of a key or a range of keys as they happen",
          load: async () => (await import("./commands/watch.ts")).watchCommand,
        },
      ],
    },
    {
      title: "Cluster maintenance commands",
      commands: [
        {
          use: "alarm <subcommand>",
          short: "Commands about alarms (store full, members inconsistent)",
          load: async () => (await import("./commands/alarm.ts")).alarmCommand,
        },
        {
          use: "backup <subcommand>",
          short: "Commands about continuous backups",
          load: async () => (await import("./commands/backup.ts")).backupCommand,
        },
        {
          use: "defrag",
          short: "Defragments members: rewrites their files to release unused space",
          load: async () => (await import("./commands/defrag.ts")).defragCommand,
        },
        {
          use: "doctor [options]",
          short: "Diagnoses a cluster: finds problems, with the next steps",
          load: async () => (await import("./commands/doctor.ts")).doctorCommand,
        },
        {
          use: "downgrade <TARGET_VERSION>",
          short: "Commands about downgrades to an earlier version",
          load: async () => (await import("./commands/downgrade.ts")).downgradeCommand,
        },
        {
          use: "endpoint <subcommand>",
          short: "Commands about the members behind endpoints",
          load: async () => (await import("./commands/endpoint.ts")).endpointCommand,
        },
        {
          use: "member <subcommand>",
          short: "Commands about the members of the cluster",
          load: async () => (await import("./commands/member.ts")).memberCommand,
        },
        {
          use: "migrate --to quorate|etcd --member NAME=PEER-URL...",
          short: "Replaces all members of a running cluster by those of another program",
          load: async () => (await import("./commands/migrate.ts")).migrateClusterCommand,
        },
        {
          use: "move-leader <transferee-member-id>",
          short: "Transfers leadership to another member",
          load: async () => (await import("./commands/move-leader.ts")).moveLeaderCommand,
        },
        {
          use: "recover [--auto] [--data-dir DIR]... [--lost MEMBER]...",
          short: "Goes on with the data of one member after a quorum was lost for good",
          load: async () => (await import("./commands/recover.ts")).recoverCommand,
        },
        {
          use: "snapshot <subcommand>",
          short: "Commands about snapshots of members",
          load: async () => (await import("./commands/snapshot.ts")).snapshotCommand,
        },
        {
          use: "top [options]",
          short: "Shows the activity of a cluster's members, live",
          load: async () => (await import("./commands/top.ts")).topCommand,
        },
      ],
    },
    {
      title: "Concurrency commands",
      commands: [
        {
          use: "elect <election-name> [proposal]",
          short: "Campaigns in an election, or observes its leader",
          load: async () => (await import("./commands/elect.ts")).electCommand,
        },
        {
          use: "lock <lockname> [exec-command arg1 arg2 ...]",
          short: "Acquires a lock and holds it while a program runs or until stopped",
          load: async () => (await import("./commands/lock.ts")).lockCommand,
        },
      ],
    },
    {
      title: "Authentication commands",
      commands: [
        {
          use: "auth <enable or disable>",
          short: "Commands that have the cluster ask for users or not",
          load: async () => (await import("./commands/auth.ts")).authCommand,
        },
        {
          use: "role <subcommand>",
          short: "Commands about roles",
          load: async () => (await import("./commands/role.ts")).roleCommand,
        },
        {
          use: "user <subcommand>",
          short: "Commands about users",
          load: async () => (await import("./commands/user.ts")).userCommand,
        },
      ],
    },
    {
      title: "Utility commands",
      commands: [
        {
          use: "check <subcommand>",
          short: "Commands that measure the cluster's capacity",
          load: async () => (await import("./commands/check.ts")).checkCommand,
        },
        completionCommand("quoratectl"),
        helpCommand,
        {
          use: "make-mirror [options] <destination>",
          short: "Copies keys to another cluster and follows their changes",
          load: async () => (await import("./commands/make-mirror.ts")).makeMirrorCommand,
        },
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
