import type { Command } from "@quorate/cli";
import { Exit, ExitCode, intFlag } from "@quorate/cli";
import { nodeDisk } from "@quorate/host/node";
import { directoryArgument, reportingErrors, withStore } from "../files/data-dir.ts";
import { checkForm, printReport } from "./report.ts";

export const hashkvCommand: Command = {
  use: "hashkv <data directory>",
  short: "Prints the hash of the history in a stopped member's store",
  long: `Prints the hash of the history in a stopped member's store, as "quoratectl endpoint hashkv" does for
a running member.

The store may be a little behind the log, which the member replays when it starts; compare at a --rev
that both have. In the simple format the line has hash, hash revision and compact revision.`,
  flags: {
    rev: intFlag("newest revision to hash (0 for the latest)"),
  },
  run: (invocation) =>
    reportingErrors(async () => {
      const { args } = invocation;
      const [place, more] = args;
      if (place === undefined || more !== undefined)
        throw new Exit(ExitCode.error, `accepts 1 arg(s), received ${args.length}`);
      if (nodeDisk.stat(place) === undefined)
        throw new Exit(ExitCode.error, `stat ${place}: no such file or directory`);
      const dataDir = directoryArgument(args, "hashkv");
      checkForm(invocation);
      await withStore(dataDir, async (store) => {
        const { hash, revision, compactRevision } = await store.mvcc.hashKV(
          invocation.flags.int("rev"),
        );
        printReport(invocation, [
          { json: "hash", title: "hash", value: hash },
          { json: "hashRevision", title: "hash revision", value: revision },
          { json: "compactRevision", title: "compact revision", value: compactRevision },
        ]);
      });
    }),
};
