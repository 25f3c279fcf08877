import { asExit, clientOf } from "../globals.ts";
import { Exit, ExitCode } from "../io.ts";
import type { Command } from "../program.ts";

/**
 * What may be wrong with the folder, its files, the disk or a snapshot; anything else but a failed
 * call is a mistake of the program.
 */
const EXPECTED = new Set(["Error", "BackupError", "BoltDamageError", "EtcdFileError"]);

const runCommand: Command = {
  use: "run --to <folder>",
  short: "Keeps a folder from which the cluster can be rebuilt as of any revision",
  long: `Keeps a folder from which the cluster can be rebuilt as of any revision since its base snapshot.

It takes a base snapshot and then records every change, on the disk within a second or two, until it is stopped (Ctrl-C, SIGTERM). Run
again it goes on where it was; what the cluster has compacted meanwhile is a gap, which it tells. "quorateutl backup" lists, verifies and
restores. Users and roles are as of the base snapshot.`,
  flags: {
    to: { kind: "string", defaultText: "", doc: "the folder" },
    retain: {
      kind: "duration",
      defaultText: "0",
      doc: "keep what is needed to rebuild any moment of this time (0 for everything)",
    },
    interval: {
      kind: "duration",
      defaultText: "24h",
      doc: "time between base snapshots (0 for the first one only)",
    },
    "hash-interval": {
      kind: "duration",
      defaultText: "5m",
      doc: "time between hashes of a member that are recorded for verify",
    },
    once: {
      kind: "bool",
      defaultText: "false",
      doc: "end when everything is recorded that has happened so far",
    },
  },
  // Imported here, because it brings the store and LevelDB, which no other command should wait for.
  run: async (invocation) =>
    (await import("../offline/data-dir.ts")).reportingErrors(async () => {
      const { args, flags, io } = invocation;
      const dir = flags.string("to").replace(/(.)\/+$/, "$1");
      if (dir === "" || args.length > 0)
        throw new Exit(
          ExitCode.badArguments,
          "backup run needs --to, a folder, and takes no arguments",
        );
      for (const name of ["retain", "interval", "hash-interval"]) {
        if (flags.durationMs(name) < 0)
          throw new Exit(ExitCode.badArguments, `--${name} must not be negative`);
      }
      const [retainMs, intervalMs] = [flags.durationMs("retain"), flags.durationMs("interval")];
      if (retainMs > 0 && intervalMs === 0) {
        throw new Exit(
          ExitCode.badArguments,
          "--retain needs base snapshots from time to time: give --interval as well",
        );
      }
      const { Recorder } = await import("../backup/recorder.ts");
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
        };
        await new Recorder(client, options, io, stop.signal).run();
      } catch (error) {
        if (error instanceof Error && EXPECTED.has(error.name))
          throw new Exit(ExitCode.error, error.message);
        throw asExit(error, io);
      } finally {
        forget();
        client.close();
      }
    }),
};

export const backupCommand: Command = {
  use: "backup <subcommand>",
  short: "Commands about continuous backups",
  commands: [runCommand],
};
