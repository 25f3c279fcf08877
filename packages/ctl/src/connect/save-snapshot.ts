/** Saving a snapshot of a member to a file. */
import { type Io, Progress } from "@quorate/cli";
import type { Client } from "@quorate/client";
import { writeSnapshotFile } from "./snapshot-file.ts";

/** Bytes of the SHA-256 at the end of a snapshot. */
const CHECKSUM_BYTES = 32;
/** A saved snapshot. */
export interface SavedSnapshot {
  /** The storage version of the file; empty from servers before 3.6. */
  readonly version: string;
  readonly sizeBytes: number;
}

export interface SaveOptions {
  /** The endpoint to use; default the client's current one. */
  readonly endpoint?: string;
  /** Stops at the next message; the promise then rejects with its reason. */
  readonly stop?: AbortSignal;
}

/**
 * Saves a snapshot of a member. The file appears whole and durable, or not at all. Rejects with
 * ClientError, or with an Error that describes the fault of the stream or the disk.
 */
export async function saveSnapshot(
  client: Client,
  path: string,
  io: Io,
  options: SaveOptions = {},
): Promise<SavedSnapshot> {
  const { createHash } = await import("node:crypto");
  const hash = createHash("sha256");
  const progress = new Progress(io, "saving snapshot");
  // The last bytes are the checksum of all others, so they are not hashed.
  let held = Buffer.alloc(0);
  let sizeBytes = 0;
  let version = "";
  try {
    await writeSnapshotFile(path, async (write) => {
      for await (const message of client.snapshot(options.endpoint)) {
        options.stop?.throwIfAborted();
        const bytes = Buffer.concat([held, message.blob]);
        const cut = Math.max(0, bytes.length - CHECKSUM_BYTES);
        hash.update(bytes.subarray(0, cut));
        held = bytes.subarray(cut);
        write(message.blob);
        sizeBytes += message.blob.length;
        version = message.version;
        progress.update(sizeBytes, sizeBytes + message.remainingBytes);
      }
      progress.end();
      if (sizeBytes % 512 !== CHECKSUM_BYTES)
        throw new Error(`sha256 checksum not found [bytes: ${sizeBytes}]`);
      if (!hash.digest().equals(held))
        throw new Error(
          "the snapshot was corrupted in transit: its sha256 checksum does not match",
        );
    });
    return { version, sizeBytes };
  } finally {
    progress.end();
  }
}
