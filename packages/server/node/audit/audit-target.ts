/**
 * Where audit lines end: a file, a named pipe, a device, or standard output ("-"). Writing never
 * waits on the event loop; a pipe without a reader takes nothing instead of blocking a thread.
 */
import { constants, write as writeCallback } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { promisify } from "node:util";
import { nonBlockingStream } from "@quorate/host/node";

const writeTo = promisify(writeCallback);

/** Logs are for their own user. */
const FILE_MODE = 0o600;

/** An open target. */
export interface AuditTarget {
  /** True for a regular file, which can be rotated. */
  readonly isFile: boolean;
  /** Bytes that it had when it was opened, and the wall-clock time of its beginning. */
  readonly sizeBytes: number;
  readonly sinceMs: number;
  /** Writes some of the bytes; resolves with how many. Rejects with the system's error. */
  write(bytes: Uint8Array): Promise<number>;
  /** Resolves when the descriptor is closed; the error of a full disk may come only here. */
  close(): Promise<void>;
}

/** Opens a target by its path. Rejects with the system's error (ENXIO: a pipe without a reader). */
export async function openAuditTarget(path: string, wallMs: number): Promise<AuditTarget> {
  if (path === "-") {
    const stdout = nonBlockingStream(1);
    const write = async (bytes: Uint8Array): Promise<number> =>
      (await writeTo(stdout, bytes)).bytesWritten;
    return { isFile: false, sizeBytes: 0, sinceMs: wallMs, write, close: async () => {} };
  }
  const kind = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  const create = kind === undefined ? constants.O_CREAT : 0;
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK | create;
  const handle = await open(path, flags, FILE_MODE);
  try {
    return await targetOf(handle, wallMs);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function targetOf(handle: FileHandle, wallMs: number): Promise<AuditTarget> {
  const found = await handle.stat();
  if (found.isDirectory()) throw new Error("it is a directory");
  const isFile = found.isFile();
  return {
    isFile,
    sizeBytes: isFile ? found.size : 0,
    sinceMs: isFile && found.size > 0 ? found.birthtimeMs || found.mtimeMs : wallMs,
    write: async (bytes) => (await handle.write(bytes)).bytesWritten,
    close: () => handle.close(),
  };
}
