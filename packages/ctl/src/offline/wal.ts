import type { Command } from "@quorate/cli";
import { nodeDisk } from "@quorate/host/node";
import { etcdserverpb, idToHex } from "@quorate/proto";
import { verifyWal } from "@quorate/wal";
import { directoryArgument, logDirectory, reportingErrors } from "../files/data-dir.ts";
import { checkForm, printReport } from "./report.ts";

const verifyCommand: Command = {
  use: "verify <directory>",
  short: "Reads a whole write-ahead log and names any damage",
  long: `Reads a whole write-ahead log, changes nothing, and names the file and offset of any damage.

The directory is the log's own or a member's data directory. The member must be stopped. A torn end,
which a crash during a write leaves, is no damage: the member cuts it off when it starts.

In the simple format the line has files, records, last index, term, vote, commit, torn bytes, member ID and cluster ID.`,
  run: (invocation) =>
    reportingErrors(async () => {
      checkForm(invocation);
      const summary = verifyWal(
        nodeDisk,
        logDirectory(directoryArgument(invocation.args, "wal verify")),
      );
      const ids = etcdserverpb.Metadata.decode(summary.metadata);
      printReport(invocation, [
        { json: "segments", title: "files", value: summary.segments.length },
        { json: "records", title: "records", value: summary.records },
        { json: "lastIndex", title: "last index", value: summary.lastIndex },
        { json: "term", title: "term", value: summary.hardState?.term ?? 0 },
        { json: "vote", title: "vote", value: idToHex(summary.hardState?.vote ?? 0n) },
        { json: "commit", title: "commit", value: summary.hardState?.commit ?? 0 },
        { json: "tornBytes", title: "torn bytes", value: summary.tornBytes },
        { json: "memberID", title: "member ID", value: idToHex(ids.NodeID) },
        { json: "clusterID", title: "cluster ID", value: idToHex(ids.ClusterID) },
      ]);
    }),
};

export const walCommand: Command = {
  use: "wal <subcommand>",
  short: "Commands about a member's write-ahead log",
  commands: [verifyCommand],
};
