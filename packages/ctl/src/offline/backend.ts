import { DiskError, type Keyspace } from "@quorate/host";
import { levelKeyspaces, nodeDisk } from "@quorate/host/node";
import { checkLevelFiles } from "@quorate/store";
import type { Command } from "../program.ts";
import { folderArgument, keyspaceFolder, refuseForeign, reportingErrors } from "./data-dir.ts";
import { checkForm, printReport } from "./report.ts";

/**
 * Opens a store whose files have been compared with their checksums, which LevelDB does not do when
 * it reads. They are compared while it is closed, since an open one rewrites them; and where it
 * cannot be opened the comparison may tell more.
 */
async function openChecked(folder: string): Promise<Keyspace> {
  const open = (): Promise<Keyspace> => levelKeyspaces.open(folder, { create: false });
  try {
    await (await open()).close();
  } catch (error) {
    const tellsAll =
      error instanceof DiskError && ["NotFound", "Locked", "NotPermitted"].includes(error.code);
    if (!tellsAll) checkLevelFiles(nodeDisk, folder);
    throw error;
  }
  checkLevelFiles(nodeDisk, folder);
  return open();
}

const verifyCommand: Command = {
  use: "verify <folder>",
  short: "Compares the checksums of a member's store, and reads every record",
  long: `Compares the checksums of all files of a member's store, reads every record, and names the first place that is not as written.

The folder is the store's own or a member's data directory. The member must be stopped.

In the simple form the line has records, bytes of keys and values, and bytes on disk.`,
  run: (invocation) =>
    reportingErrors(async () => {
      checkForm(invocation);
      const dir = folderArgument(invocation.args, "backend verify");
      refuseForeign(dir);
      const keyspace = await openChecked(keyspaceFolder(dir));
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

export const backendCommand: Command = {
  use: "backend <subcommand>",
  short: "Commands about a member's store",
  commands: [verifyCommand],
};
