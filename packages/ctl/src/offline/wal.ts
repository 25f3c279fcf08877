import { nodeDisk } from "@quorate/host/node";
import { etcdserverpb, idToHex } from "@quorate/proto";
import { verifyWal } from "@quorate/wal";
import type { Command } from "../program.ts";
import { folderArgument, logFolder, reportingErrors } from "./data-dir.ts";
import { checkForm, printReport } from "./report.ts";

const verifyCommand: Command = {
  use: "verify <folder>",
  short: "Reads a write-ahead log from end to end and names the place of any damage",
  long: `Reads a write-ahead log from end to end, changes nothing, and names the file and byte of any damage.

The folder is the log's own or a member's data directory. The member must be stopped. A torn end, as a crash in the middle of a write
leaves it, is no damage: the member cuts it off when it starts.

In the simple form the line has files, records, last index, term, vote, commit, torn bytes, member ID and cluster ID.`,
  run: (invocation) =>
    reportingErrors(async () => {
      checkForm(invocation);
      const summary = verifyWal(nodeDisk, logFolder(folderArgument(invocation.args, "wal verify")));
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
