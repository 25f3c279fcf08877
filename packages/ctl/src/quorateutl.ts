/** quorateutl: the command line for the files of a stopped member. */

import type { Program } from "@quorate/cli";
import { textFlag } from "@quorate/cli";
import { completionCommand } from "./commands/completion.ts";
import { helpCommand, versionCommand } from "./commands/help.ts";
import { backendCommand } from "./offline/backend.ts";
import { backupFilesCommand } from "./offline/backup.ts";
import { defragCommand } from "./offline/defrag.ts";
import { dumpDbCommand } from "./offline/dump-db.ts";
import { dumpLogsCommand } from "./offline/dump-logs.ts";
import { adoptCommand, releaseCommand } from "./offline/etcd-member.ts";
import { hashkvCommand } from "./offline/hashkv.ts";
import { migrateCommand } from "./offline/migrate.ts";
import { snapshotFileCommand } from "./offline/snapshot.ts";
import { statusCommand } from "./offline/status.ts";
import { walCommand } from "./offline/wal.ts";

export const quorateutl: Program = {
  name: "quorateutl",
  short: "quorateutl: tools for the files of a stopped member.",
  groups: [
    {
      title: "Commands about files",
      commands: [
        adoptCommand,
        backendCommand,
        backupFilesCommand,
        defragCommand,
        dumpDbCommand,
        dumpLogsCommand,
        hashkvCommand,
        migrateCommand,
        releaseCommand,
        snapshotFileCommand,
        statusCommand,
        walCommand,
      ],
    },
    {
      title: "Utility commands",
      commands: [completionCommand("quorateutl"), helpCommand, versionCommand("quorateutl")],
    },
  ],
  globals: {
    "write-out": textFlag("output format: fields, json, simple, table", "simple", {
      shorthand: "w",
      values: ["fields", "json", "simple", "table"],
    }),
  },
};
