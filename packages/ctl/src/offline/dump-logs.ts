import type { Command } from "../command.ts";

export const dumpLogsCommand: Command = {
  use: "dump-logs [options] <data directory>",
  short: "Prints the entries of a member's log",
  long: `Prints the entries of a member's log as etcd-dump-logs does: where they begin, the metadata, then term, index, type and data of
each. It reads logs of Quorate and of etcd, and changes nothing. The folder is a data directory or the log's own. Passwords are left out.

A decoder (--stream-decoder) is given each entry as a line in hexadecimal and answers with a line "status|decoded data". Where the log is
damaged, the entries before that place are printed, then the file, the place and the command to run next.`,
  flags: {
    "wal-dir": {
      kind: "string",
      defaultText: "",
      doc: "folder of the log, where it is not member/wal in the data directory",
    },
    "start-index": {
      kind: "int",
      defaultText: "0",
      doc: "first index to print (without it, the one after the last snapshot)",
    },
    "end-index": { kind: "int", defaultText: "0", doc: "index to stop before (0 for none)" },
    "start-snap": {
      kind: "string",
      defaultText: "",
      doc: "base name of the snapshot file to start behind",
    },
    "entry-type": {
      kind: "string",
      defaultText: "Normal,ConfigChange",
      doc:
        "comma-separated types to print: ConfigChange, Normal, Request, InternalRaftRequest, IRRRange, IRRPut, IRRDeleteRange, IRRTxn, " +
        "IRRCompaction, IRRLeaseGrant, IRRLeaseRevoke, IRRLeaseCheckpoint",
    },
    "stream-decoder": {
      kind: "string",
      defaultText: "",
      doc: "program, with its arguments, that decodes entries line by line",
    },
    raw: {
      kind: "bool",
      defaultText: "false",
      doc: "print every record of the log as it stands there",
    },
  },
  async run(invocation) {
    const { runDumpLogs } = await import("../dump/logs.ts");
    await runDumpLogs(invocation);
  },
};
