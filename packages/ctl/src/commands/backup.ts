import { randomUUID } from "node:crypto";
import type { BackupStatus } from "@quorate/backup/node";
import type { Command, CommandBody } from "@quorate/cli";
import { badArguments, boolFlag, durationFlag, Exit, ExitCode, textFlag } from "@quorate/cli";
import { asExit } from "../connect/failed-call.ts";
import { clientOf } from "../connect/globals.ts";
import { saveSnapshot } from "../connect/save-snapshot.ts";
import {
  ABOUT_CREDENTIALS,
  objectLockFlags,
  objectStoreFlags,
  objectStoreOf,
} from "../files/object-store.ts";

/**
 * Operating errors of the directory, its files, the disk or a snapshot. Anything else but a failed
 * call is a bug.
 */
const EXPECTED = new Set([
  "Error",
  "BackupError",
  "BoltDamageError",
  "EtcdFileError",
  "ObjectStoreError",
]);

const runCommand: Command = {
  use: "run --to <directory> [--mirror s3://<bucket>/<prefix>]",
  short: "Backs the cluster up continuously: it can be rebuilt as of any revision",
  long: `Backs the cluster up continuously: it can be rebuilt as of any revision since the base snapshot.

It takes a base snapshot and then records every change, durable within two seconds, until stopped
(Ctrl-C, SIGTERM). A later run continues where this one ended; history that the cluster compacted
meanwhile is a gap, which it reports. "quorateutl backup" lists, verifies and restores. Users and
roles are those of the base snapshot.

With --mirror the directory is copied to an object store while it grows, and "quorateutl backup
fetch" makes a directory of it again.

${ABOUT_CREDENTIALS}`,
  flags: {
    to: textFlag("directory of the backup"),
    retain: durationFlag(
      "how far back any moment can be rebuilt; older files are removed (0 to keep all)",
      "0",
    ),
    interval: durationFlag("interval between base snapshots (0 for only one)", "24h"),
    "hash-interval": durationFlag("interval between recorded hashes, which verify compares", "5m"),
    once: boolFlag("end once all changes made so far are recorded"),
    mirror: textFlag("object store to copy the directory to, s3://bucket/prefix"),
    "mirror-interval": durationFlag(
      "interval between copies: what is lost with the directory",
      "10s",
    ),
    "metrics-file": textFlag("file to keep metrics in, for node_exporter's textfile collector"),
    ...objectLockFlags,
    ...objectStoreFlags,
  },
  // A dynamic import, because it loads the store and LevelDB, which slow other commands down.
  run: async (invocation) => {
    const { plainPath, reportingErrors } = await import("../files/data-dir.ts");
    return reportingErrors(async () => {
      const { args, flags, io } = invocation;
      const dir = plainPath(flags.string("to"));
      if (dir === "" || args.length > 0)
        throw badArguments("backup run needs --to, a directory, and takes no arguments");
      for (const name of [
        "retain",
        "interval",
        "hash-interval",
        "mirror-interval",
        "object-lock",
      ]) {
        if (flags.durationMs(name) < 0) throw badArguments(`--${name} must not be negative`);
      }
      const [retainMs, intervalMs] = [flags.durationMs("retain"), flags.durationMs("interval")];
      if (retainMs > 0 && intervalMs === 0) {
        throw badArguments("--retain needs periodic base snapshots: set --interval as well");
      }
      const [{ Mirror }, { Recorder, writeBackupMetrics }, { nodeClock, nodeDisk }] =
        await Promise.all([
          import("@quorate/backup"),
          import("@quorate/backup/node"),
          import("@quorate/host/node"),
        ]);
      const place = flags.string("mirror");
      const store =
        place === ""
          ? undefined
          : await objectStoreOf(invocation, place, flags.durationMs("object-lock"));
      const { client } = await clientOf(invocation);
      const stop = new AbortController();
      const forget = io.onStop(() => stop.abort());
      try {
        const options = {
          dir,
          retainMs,
          intervalMs,
          hashIntervalMs: flags.durationMs("hash-interval"),
          once: flags.bool("once"),
          mirrorIntervalMs: flags.durationMs("mirror-interval"),
        };
        const base = {
          disk: nodeDisk,
          clock: nodeClock,
          report: (text: string) => io.stdout(`${new Date().toISOString()} ${text}\n`),
          warn: (text: string) => io.stderr(`Warning: ${text}\n`),
        };
        const mirror = store && new Mirror({ ...base, store, identity: randomUUID() }, dir);
        const metricsFile = flags.string("metrics-file");
        const deps = {
          ...base,
          client,
          mirror,
          publish: (status: BackupStatus) => writeBackupMetrics(metricsFile, status, mirror),
          saveSnapshot: async (path: string, signal: AbortSignal) =>
            (await saveSnapshot(client, path, io, { stop: signal })).sizeBytes,
        };
        await new Recorder(options, deps, stop.signal).run();
      } catch (error) {
        if (error instanceof Error && EXPECTED.has(error.name))
          throw new Exit(ExitCode.error, error.message);
        throw asExit(error, io);
      } finally {
        forget();
        client.close();
        await store?.close();
      }
    });
  },
};

export const backupCommand: CommandBody = {
  commands: [runCommand],
};
