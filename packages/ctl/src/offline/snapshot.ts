import { BoltDamageError } from "@quorate/bolt";
import type { Command, Invocation } from "@quorate/cli";
import {
  badArguments,
  boolFlag,
  Exit,
  ExitCode,
  humanBytes,
  intFlag,
  Progress,
} from "@quorate/cli";
import { levelKeyspaces, nodeDisk } from "@quorate/host/node";
import { defined } from "@quorate/proto";
import {
  EtcdFileError,
  etcdFileStatus,
  hasChecksum,
  importEtcdFile,
  StoreDamageError,
  verifyChecksum,
} from "@quorate/store";
import { writeSnapshotFile } from "../connect/snapshot-file.ts";
import { apiVersion } from "../connect/versions.ts";
import { plainPath, reportingErrors, withStore } from "../files/data-dir.ts";
import { newMemberFlags, newMemberOf } from "./new-member.ts";
import { checkForm, printReport } from "./report.ts";
import { bumpRevisionOf, restoreFlags, restoreMember } from "./restore.ts";

/** The only argument: a file that must exist. Throws Exit. */
function fileArgument(args: readonly string[], command: string, verb: string): string {
  const [path] = args;
  if (path === undefined || args.length > 1)
    throw badArguments(`${command} requires exactly one argument`);
  const kind = nodeDisk.stat(path)?.kind;
  if (kind !== "file")
    throw new Exit(
      ExitCode.error,
      `${verb} ${path}: ${kind === undefined ? "no such file or directory" : "not a file"}`,
    );
  return path;
}

/**
 * Runs a command on a snapshot file; operating errors become an Exit with their text and the next
 * step.
 */
function onFile(path: string, task: () => Promise<void>): Promise<void> {
  return reportingErrors(task, (error) => {
    const next = "Use another snapshot: this one cannot be restored from";
    if (error instanceof BoltDamageError || error instanceof EtcdFileError)
      return `${error.message}. ${next}`;
    if (error instanceof StoreDamageError)
      return `${path}: ${error.place}: ${error.problem}. ${next}`;
  });
}

/** Verifies the SHA-256 at the end of the file, with progress. */
function checkFile(path: string, { io }: Invocation): void {
  const progress = new Progress(io, "checking  ");
  const totalBytes = defined(nodeDisk.stat(path), "the file").sizeBytes;
  try {
    verifyChecksum(nodeDisk, path, (bytes) => progress.update(bytes, totalBytes - 32));
  } finally {
    progress.end();
  }
}

const statusCommand: Command = {
  use: "status <filename>",
  short: "Prints the state in a snapshot file",
  long: `Prints the state in a snapshot file of Quorate or etcd. It reads the whole file and names any damage
with its offset.

In the simple format the line has hash, revision, keys, size and version.`,
  run: (invocation) => {
    const path = fileArgument(invocation.args, "snapshot status", "stat");
    checkForm(invocation);
    return onFile(path, async () => {
      // A database copied from a data directory has no checksum, but can be read all the same.
      if (hasChecksum(defined(nodeDisk.stat(path), "the file").sizeBytes))
        checkFile(path, invocation);
      const { hash, revision, keys, sizeBytes, version } = etcdFileStatus(nodeDisk, path);
      printReport(invocation, [
        { json: "hash", title: "hash", value: hash, shown: hash.toString(16) },
        { json: "revision", title: "revision", value: revision },
        { json: "totalKey", title: "total keys", field: "Keys", value: keys },
        {
          json: "totalSize",
          title: "total size",
          field: "Size",
          value: sizeBytes,
          shown: humanBytes(sizeBytes),
        },
        { json: "version", title: "version", value: version },
      ]);
    });
  },
};

const saveCommand: Command = {
  use: "save <data directory> <filename>",
  short: "Makes a snapshot file of a stopped member's store",
  long: `Makes a snapshot file of a stopped member's store, as "quoratectl snapshot save" does of a running
one, and changes nothing. It is for members that cannot start or that nobody can log in to.

The log is not read: changes that only the log has are missing. A member that was stopped in order
has all that it applied in its store. Of several members take the one with the highest applied index
("quorateutl status").`,
  run: async ({ args, io }) => {
    const [dataDir, path] = args;
    if (dataDir === undefined || path === undefined || args.length > 2)
      throw badArguments("snapshot save needs two arguments, a data directory and a file");
    await reportingErrors(() =>
      withStore(plainPath(dataDir), async (store) => {
        const snapshot = await store.etcdSnapshot(`${apiVersion}.0`);
        const progress = new Progress(io, "saving snapshot");
        try {
          await writeSnapshotFile(path, async (write) => {
            let bytes = 0;
            for await (const chunk of snapshot.chunks()) {
              write(chunk);
              bytes += chunk.length;
              progress.update(bytes, snapshot.databaseBytes);
            }
          });
        } catch (error) {
          const { message, syscall } = error as NodeJS.ErrnoException;
          const isOfFile = syscall !== undefined || message.startsWith("could not ");
          throw isOfFile ? new Exit(ExitCode.error, message) : error;
        } finally {
          progress.end();
          await snapshot.close();
        }
        io.stdout(
          `Snapshot saved at ${path}: revision ${store.mvcc.currentRevision}, ${store.mvcc.keyCount} keys, ` +
            `applied index ${store.position.index}\n`,
        );
      }),
    );
  },
};

const restoreCommand: Command = {
  use: "restore <filename> --data-dir {output dir} [options]",
  short: "Makes a member's data directory from a snapshot file",
  long: `Makes a member's data directory from a snapshot file of Quorate or etcd.

Run it once for each member of the new cluster, with the same file, --initial-cluster and
--initial-cluster-token; then start the members with those flags. --bump-revision with
--mark-compacted makes watching clients notice that history went back.

--disable-auth is the way back after root's password is lost: users and roles stay, and are enforced
again by "quoratectl auth enable".`,
  flags: {
    ...newMemberFlags,
    "skip-hash-check": boolFlag("do not verify the SHA-256 (for a database from a data directory)"),
    "initial-memory-map-size": intFlag("accepted for compatibility with etcdutl; without effect"),
    ...restoreFlags,
  },
  run: async (invocation) => {
    const { args, flags, io } = invocation;
    if (args.length !== 1) throw badArguments("snapshot restore requires exactly one argument");
    const bumpRevision = bumpRevisionOf(flags);
    const target = await newMemberOf(invocation);
    const path = fileArgument(args, "snapshot restore", "open");
    await onFile(path, async () => {
      if (!flags.bool("skip-hash-check")) checkFile(path, invocation);
      await restoreMember(io, path, target, (storeDir, onProgress) =>
        importEtcdFile(
          { disk: nodeDisk, keyspaces: levelKeyspaces },
          path,
          storeDir,
          target.cluster,
          {
            bumpRevision,
            disablesAuth: flags.bool("disable-auth"),
            onProgress,
          },
        ),
      );
    });
  },
};

export const snapshotFileCommand: Command = {
  use: "snapshot <subcommand>",
  short: "Commands about snapshot files",
  commands: [restoreCommand, saveCommand, statusCommand],
};
