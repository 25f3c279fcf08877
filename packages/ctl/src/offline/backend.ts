import type { Command } from "@quorate/cli";
import { DiskError, type Keyspace } from "@quorate/host";
import { levelKeyspaces, nodeDisk } from "@quorate/host/node";
import { checkLevelFiles } from "@quorate/store";
import {
  directoryArgument,
  keyspaceDirectory,
  refuseForeign,
  reportingErrors,
} from "../files/data-dir.ts";
import { checkForm, printReport } from "./report.ts";

/**
 * Opens a store after verifying the checksums of its files, which LevelDB does not do when it
 * reads. They are verified while the store is closed, since an open one rewrites files. If the
 * store cannot be opened, the verification may find the cause.
 */
async function openChecked(dir: string): Promise<Keyspace> {
  const open = (): Promise<Keyspace> => levelKeyspaces.open(dir, { create: false });
  try {
    await (await open()).close();
  } catch (error) {
    const isConclusive =
      error instanceof DiskError && ["NotFound", "Locked", "NotPermitted"].includes(error.code);
    if (!isConclusive) await checkLevelFiles(nodeDisk, dir);
    throw error;
  }
  await checkLevelFiles(nodeDisk, dir);
  return open();
}

const verifyCommand: Command = {
  use: "verify <directory>",
  short: "Verifies the checksums of a member's store and reads every record",
  long: `Verifies the checksums of all files of a member's store, reads every record, and names the first
damage. The directory is the store's or a member's data directory. The member must be stopped.

In the simple format the line has records, bytes of keys and values, and bytes on disk.`,
  run: (invocation) =>
    reportingErrors(async () => {
      checkForm(invocation);
      const dir = directoryArgument(invocation.args, "backend verify");
      refuseForeign(dir);
      const keyspace = await openChecked(keyspaceDirectory(dir));
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
