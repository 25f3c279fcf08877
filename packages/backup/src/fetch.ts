/** Makes the directory of a backup from an object store: the way back of mirror.ts. */
import type { Disk } from "@quorate/host";
import { equals } from "@quorate/proto";
import { BackupError } from "./errors.ts";
import { parseBaseName, parseSegmentName } from "./format.ts";
import {
  IDENTITY_FILE,
  IDENTITY_OBJECT,
  type Piece,
  parsePiece,
  piecesInOrder,
  readIdentity,
} from "./mirror.ts";
import type { ObjectStore, StoredObject } from "./object-store.ts";

/** A file of the directory, and the objects that it consists of. */
interface WantedFile {
  readonly name: string;
  readonly sizeBytes: number;
  readonly parts: readonly { readonly name: string; readonly skipBytes: number }[];
}

export interface FetchOptions {
  /**
   * Fetches only the base that this point is rebuilt from; absent for all of them. Segments are
   * fetched whole: which revisions are in them stands inside.
   */
  readonly until?: { readonly revision: number } | { readonly timeMs: number };
  /** Called with the bytes fetched so far, and all. */
  progress(bytes: number, total: number): void;
}

/**
 * Fetches a backup into a directory that is empty or has a part of it; files that are there stay.
 * Each appears whole or not at all. Rejects with BackupError, ObjectStoreError, DiskError.
 * @returns the number and the bytes of files fetched
 */
export async function fetchBackup(
  disk: Disk,
  store: ObjectStore,
  dir: string,
  { until, progress }: FetchOptions,
): Promise<{ files: number; sizeBytes: number }> {
  const objects = await store.list();
  const identity = await readIdentity(store, objects);
  if (identity === undefined)
    throw new BackupError("OutOfRange", store.place, `it has no backup: no ${IDENTITY_OBJECT}`);
  disk.makeDir(dir);
  const lock = disk.lock(`${dir}/lock`);
  try {
    claim(disk, dir, identity, store.place);
    const wanted = [...basesOf(objects, until, store.place), ...segmentsOf(objects)].filter(
      ({ name, sizeBytes }) => disk.stat(`${dir}/${name}`)?.sizeBytes !== sizeBytes,
    );
    const total = wanted.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    let fetched = 0;
    for (const file of wanted) {
      await fetchFile(disk, store, dir, file, (bytes) => {
        fetched += bytes;
        progress(fetched, total);
      });
    }
    return { files: wanted.length, sizeBytes: total };
  } finally {
    lock.release();
  }
}

/** Makes the directory this backup's. */
function claim(disk: Disk, dir: string, identity: Uint8Array, place: string): void {
  const path = `${dir}/${IDENTITY_FILE}`;
  if (disk.stat(path) !== undefined) {
    if (equals(disk.readAll(path), identity)) return;
    throw new BackupError("OtherHistory", dir, `it has another backup than ${place}`);
  }
  // The lock is two files.
  const strange = disk.list(dir).find((name) => !name.startsWith("lock"));
  if (strange !== undefined)
    throw new BackupError(
      "OtherHistory",
      dir,
      `it is not empty (${strange}): give a new directory, or one of this backup`,
    );
  disk.replace(path, identity);
}

function basesOf(
  objects: readonly StoredObject[],
  until: FetchOptions["until"],
  place: string,
): WantedFile[] {
  const bases = objects.flatMap(({ name, sizeBytes }) => {
    const base = parseBaseName(name);
    return base === undefined ? [] : [{ name, sizeBytes, ...base }];
  });
  bases.sort((a, b) => a.revision - b.revision || a.timeMs - b.timeMs);
  const found =
    until === undefined
      ? bases
      : bases
          .filter((base) =>
            "revision" in until ? base.revision <= until.revision : base.timeMs <= until.timeMs,
          )
          .slice(-1);
  if (found.length === 0)
    throw new BackupError("OutOfRange", place, "it has no base snapshot that old");
  return found.map(({ name, sizeBytes }) => ({ name, sizeBytes, parts: [{ name, skipBytes: 0 }] }));
}

function segmentsOf(objects: readonly StoredObject[]): WantedFile[] {
  const found: WantedFile[] = [];
  const pieces = new Map<string, Piece[]>();
  for (const { name, sizeBytes } of objects) {
    const piece = parsePiece(name, sizeBytes);
    if (parseSegmentName(name) !== undefined)
      found.push({ name, sizeBytes, parts: [{ name, skipBytes: 0 }] });
    else if (piece !== undefined)
      pieces.set(piece.segment, [...(pieces.get(piece.segment) ?? []), piece]);
  }
  for (const { name } of found) pieces.delete(name);
  for (const [name, some] of pieces) {
    const parts: { name: string; skipBytes: number }[] = [];
    let sizeBytes = 0;
    for (const piece of piecesInOrder(some)) {
      parts.push({ name: piece.name, skipBytes: sizeBytes - piece.from });
      sizeBytes = piece.to;
    }
    if (parts.length > 0) found.push({ name, sizeBytes, parts });
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function fetchFile(
  disk: Disk,
  store: ObjectStore,
  dir: string,
  { name, sizeBytes, parts }: WantedFile,
  progress: (bytes: number) => void,
): Promise<void> {
  const incoming = `${dir}/incoming`;
  disk.remove(incoming);
  const file = disk.open(incoming, "create");
  try {
    let at = 0;
    for (const { name: object, skipBytes } of parts) {
      let skip = skipBytes;
      for await (const chunk of store.get(object)) {
        const rest = chunk.subarray(Math.min(skip, chunk.length));
        skip -= chunk.length - rest.length;
        file.write([rest], at);
        at += rest.length;
        progress(rest.length);
      }
    }
    if (at !== sizeBytes)
      throw new BackupError(
        "Damaged",
        `${store.place}/${name}`,
        `it has ${at} bytes, and ${sizeBytes} were listed`,
      );
    await file.dataSync();
  } finally {
    file.close();
  }
  disk.rename(incoming, `${dir}/${name}`);
  disk.syncDir(dir);
}
