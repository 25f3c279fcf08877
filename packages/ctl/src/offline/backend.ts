import { levelKeyspaces } from "@quorate/host/node";
import type { Command } from "../program.ts";
import { folderArgument, keyspaceFolder, refuseForeign, reportingErrors } from "./data-dir.ts";
import { checkForm, printReport } from "./report.ts";

const verifyCommand: Command = {
  use: "verify <folder>",
  short: "Reads every record of a member's store and names the first that cannot be read",
  long: `Reads every record of a member's store, whose checksums are compared, and names the first that cannot be read.

The folder is the store's own or a member's data directory. The member must be stopped.

In the simple form the line has records, bytes of keys and values, and bytes on disk.`,
  run: (invocation) =>
    reportingErrors(async () => {
      checkForm(invocation);
      const dir = folderArgument(invocation.args, "backend verify");
      refuseForeign(dir);
      const keyspace = await levelKeyspaces.open(keyspaceFolder(dir), { create: false });
      let records = 0;
      let bytes = 0;
      try {
        for await (const slice of keyspace.scan({})) {
          records += slice.length;
          for (const [key, value] of slice) bytes += key.length + value.length;
        }
        printReport(invocation, [
          { json: "records", title: "records", value: records },
          { json: "recordBytes", title: "record bytes", value: bytes },
          { json: "diskBytes", title: "disk bytes", value: keyspace.sizeOnDiskBytes() },
        ]);
      } finally {
        await keyspace.close();
      }
    }),
};

export const backendCommand: Command = { use: "backend <subcommand>", short: "Commands about a member's store", commands: [verifyCommand] };
