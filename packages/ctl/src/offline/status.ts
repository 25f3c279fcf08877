import type { Command } from "@quorate/cli";
import { humanBytes } from "@quorate/cli";
import { directoryArgument, reportingErrors, withStore } from "../files/data-dir.ts";
import { checkForm, printReport } from "./report.ts";

export const statusCommand: Command = {
  use: "status <data directory>",
  short: "Prints the state of a stopped member's store",
  long: `Prints the state of a stopped member's store. The log may reach further: the member replays the rest
when it starts.

In the simple format the line has applied index, term, revision, compact revision, keys and size on disk.`,
  run: (invocation) =>
    reportingErrors(async () => {
      checkForm(invocation);
      const dataDir = directoryArgument(invocation.args, "status");
      await withStore(dataDir, async (store) => {
        const sizeBytes = store.sizeOnDiskBytes;
        printReport(invocation, [
          { json: "appliedIndex", title: "applied index", value: store.position.index },
          { json: "term", title: "term", value: store.position.term },
          { json: "revision", title: "revision", value: store.mvcc.currentRevision },
          { json: "compactRevision", title: "compact revision", value: store.mvcc.compactRevision },
          { json: "keys", title: "keys", value: store.mvcc.keyCount },
          {
            json: "sizeBytes",
            title: "size",
            value:
              invocation.flags.string("write-out") === "json" ? sizeBytes : humanBytes(sizeBytes),
          },
        ]);
      });
    }),
};
