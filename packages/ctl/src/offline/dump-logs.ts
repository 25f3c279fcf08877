import type { Command } from "@quorate/cli";
import { boolFlag, intFlag, textFlag } from "@quorate/cli";

export const dumpLogsCommand: Command = {
  use: "dump-logs [options] <data directory>",
  short: "Prints the entries of a member's log",
  long: `Prints the entries of a member's log as etcd-dump-logs does: the start, the metadata, then term,
index, type and data of each entry. It reads logs of Quorate and of etcd and changes nothing. The
directory is a data directory or the log's own. Passwords are left out.

A decoder (--stream-decoder) reads each entry as a line in hexadecimal and prints a line
"status|decoded data". In a damaged log the entries before the damage are printed, then the file, the
offset and the command to run next.`,
  flags: {
    "wal-dir": textFlag("directory of the log, if it is not member/wal in the data directory"),
    "start-index": intFlag("first index to print (default the one after the last snapshot)"),
    "end-index": intFlag("index to stop before (0 for none)"),
    "start-snap": textFlag("base name of the snapshot file to start after"),
    "entry-type": textFlag(
      "comma-separated types to print: ConfigChange, Normal, Request, InternalRaftRequest, IRRRange, IRRPut, IRRDeleteRange, IRRTxn, " +
        "IRRCompaction, IRRLeaseGrant, IRRLeaseRevoke, IRRLeaseCheckpoint",
      "Normal,ConfigChange",
    ),
    "stream-decoder": textFlag("program, with its arguments, that decodes entries line by line"),
    "max-value-bytes": intFlag(
      "show this much of a longer key or value, and its size (0 shows all, as etcd-dump-logs does)",
      "1024",
    ),
    raw: boolFlag("print every record of the log in its order"),
  },
  async run(invocation) {
    const { runDumpLogs } = await import("../dump/logs.ts");
    await runDumpLogs(invocation);
  },
};
