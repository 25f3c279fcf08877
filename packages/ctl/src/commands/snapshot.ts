import { createHash } from "node:crypto";
import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Client } from "@quorate/client";
import { asExit, clientOf, endpointsOf } from "../globals.ts";
import { Exit, ExitCode, type Io, systemReason } from "../io.ts";
import type { Command } from "../program.ts";
import { Progress } from "../progress.ts";

/** Bytes of the SHA-256 at the end of a snapshot. */
const CHECKSUM_BYTES = 32;
/** What a saved snapshot is. */
export interface SavedSnapshot {
  /** The version of etcd whose file it is; empty from servers before 3.6. */
  readonly version: string;
  readonly sizeBytes: number;
}

export interface SaveOptions {
  /** The member to ask; the one in use unless told. */
  readonly endpoint?: string;
  /** Gives it up at the next message; the promise rejects with its reason then. */
  readonly stop?: AbortSignal;
}

/**
 * Saves a snapshot of a member so that the file appears whole and durable or not at all. Rejects
 * with ClientError, or with an Error that says what is wrong with the stream or the disk.
 */
export async function saveSnapshot(
  client: Client,
  path: string,
  io: Io,
  options: SaveOptions = {},
): Promise<SavedSnapshot> {
  const part = `${path}.part`;
  // A device or a folder would be replaced by the file.
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) {
    throw new Error(
      `could not write ${path}: it is ${found.isDirectory() ? "a folder" : "no plain file"}; name a file`,
    );
  }
  const file = openPart(part);
  const progress = new Progress(io, "saving snapshot");
  let open = true;
  try {
    const hash = createHash("sha256");
    // The last bytes are the checksum of those before, so they are held back.
    let held = Buffer.alloc(0);
    let sizeBytes = 0;
    let version = "";
    for await (const message of client.snapshot(options.endpoint)) {
      options.stop?.throwIfAborted();
      const bytes = Buffer.concat([held, message.blob]);
      const cut = Math.max(0, bytes.length - CHECKSUM_BYTES);
      hash.update(bytes.subarray(0, cut));
      held = bytes.subarray(cut);
      writeAll(file, message.blob);
      sizeBytes += message.blob.length;
      version = message.version;
      progress.update(sizeBytes, sizeBytes + message.remainingBytes);
    }
    progress.end();
    if (sizeBytes % 512 !== CHECKSUM_BYTES)
      throw new Error(`sha256 checksum not found [bytes: ${sizeBytes}]`);
    if (!hash.digest().equals(held))
      throw new Error("the snapshot was changed on its way: its sha256 checksum does not match");
    fsyncSync(file);
    closeSync(file);
    open = false;
    renameSync(part, path);
    syncFolder(dirname(path));
    return { version, sizeBytes };
  } finally {
    progress.end();
    if (open) closeSync(file);
    rmSync(part, { force: true });
  }
}

function openPart(part: string): number {
  try {
    return openSync(part, "w", 0o600);
  } catch (error) {
    throw new Error(`could not open ${part} (open ${part}: ${systemReason(error)})`);
  }
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
}

function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

const saveCommand: Command = {
  use: "save <filename>",
  short: "Saves the whole store of one member to a file",
  long: `Saves the whole store of one member to a file, which etcdctl, etcdutl and quorateutl restore members from.

The file appears when it is complete and on the disk; until then it has the name <filename>.part. --command-timeout counts only if given.`,
  async run(invocation) {
    const { args, flags, io } = invocation;
    const [path] = args;
    if (path === undefined || args.length > 1)
      throw new Exit(ExitCode.badArguments, "snapshot save expects one argument <filename>");
    const endpoints = await endpointsOf(invocation);
    if (endpoints.length !== 1) {
      throw new Exit(
        ExitCode.interrupted,
        `snapshot must be requested to one selected node, not multiple [${endpoints.join(" ")}]`,
      );
    }
    const { client } = await clientOf(invocation, endpoints);
    const timer = flags.isSet("command-timeout")
      ? setTimeout(() => client.close(), flags.durationMs("command-timeout"))
      : undefined;
    try {
      const { version } = await saveSnapshot(client, path, io);
      io.stdout(
        `Snapshot saved at ${path}\n${version === "" ? "" : `Server version ${version}\n`}`,
      );
    } catch (error) {
      const exit = asExit(error, io);
      throw new Exit(ExitCode.interrupted, exit instanceof Error ? exit.message : String(exit));
    } finally {
      clearTimeout(timer);
      client.close();
    }
  },
};

export const snapshotCommand: Command = {
  use: "snapshot <subcommand>",
  short: "Commands about snapshots of members",
  commands: [saveCommand],
};
