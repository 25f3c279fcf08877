/** Receives the store of another member, to be put in the place of this one. */
import { BoltFile } from "@quorate/bolt";
import type { Disk, DiskFile, Keyspace, KeyspaceOpener } from "@quorate/host";
import { raftpb, toHex } from "@quorate/proto";
import { Backend, Bucket } from "./backend/backend.ts";
import { incomingDirectory, incomingFile, markReceived } from "./backend/directories.ts";
import { type Position, readPosition, readStorageVersion } from "./backend/meta.ts";
import { copyMemberFile } from "./etcd-file/import.ts";
import { decodeSnapshot, SnapshotStreamError } from "./snapshot-stream.ts";

interface ReceiveDeps {
  readonly keyspaces: KeyspaceOpener;
  readonly disk: Disk;
}

/**
 * Receives a snapshot into a directory beside the current store. When it resolves, the directory is
 * complete, verified and marked as such; installReceived then replaces the store with it. A failure
 * leaves nothing that could be taken for complete.
 * @param index the expected index of the store
 * @param announced its expected term and configuration, if announced
 * @throws SnapshotStreamError, also for another position than `index`; DiskError; the errors of
 *   `chunks`
 */
export function receiveSnapshot(
  deps: ReceiveDeps,
  dir: string,
  index: number,
  chunks: AsyncIterable<Uint8Array>,
  progress?: (bytes: number) => void,
  announced: Partial<Position> = {},
): Promise<void> {
  return receive(deps, dir, index, async (keyspace, incoming) => {
    const lengthBytes = await decodeSnapshot(chunks, keyspace, progress);
    const backend = new Backend(keyspace);
    const meta = (key: Uint8Array) => backend.get(Bucket.meta, key);
    readStorageVersion(meta, incoming);
    const position = readPosition(meta, incoming);
    const difference = differenceOf(position, { ...announced, index });
    if (difference !== undefined) throw new SnapshotStreamError(lengthBytes, difference);
  });
}

/**
 * As receiveSnapshot, for the database file of a member of etcd.
 * @param position where the file stands in the log, as announced
 * @throws BoltDamageError; EtcdFileError, also for a file of another position or membership;
 *   DiskError; the errors of `chunks`
 */
export function receiveEtcdFile(
  deps: ReceiveDeps,
  dir: string,
  position: Position,
  chunks: AsyncIterable<Uint8Array>,
): Promise<void> {
  const { index } = position;
  return receive(deps, dir, index, (keyspace) =>
    readFile(deps.disk, incomingFile(dir, index), chunks, (file) =>
      copyMemberFile(file, keyspace, position),
    ),
  );
}

async function receive(
  deps: ReceiveDeps,
  dir: string,
  index: number,
  fill: (keyspace: Keyspace, incoming: string) => Promise<void>,
): Promise<void> {
  const incoming = incomingDirectory(dir, index);
  deps.disk.remove(incoming);
  const keyspace: Keyspace = await deps.keyspaces.open(incoming, { create: true });
  try {
    await fill(keyspace, incoming);
  } catch (error) {
    await keyspace.close().catch(() => {});
    deps.disk.remove(incoming);
    throw error;
  }
  await keyspace.close();
  markReceived(deps.disk, dir, index);
}

/** Reads a database in the order of its trees, so it has to be there whole. */
async function readFile(
  disk: Disk,
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  read: (file: BoltFile) => Promise<void>,
): Promise<void> {
  disk.remove(path);
  try {
    await writeChunks(disk.open(path, "create"), chunks);
    const file = BoltFile.open(disk, path);
    try {
      await read(file);
    } finally {
      file.close();
    }
  } finally {
    disk.remove(path);
  }
}

async function writeChunks(file: DiskFile, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of chunks) {
      file.write([chunk], bytes);
      bytes += chunk.length;
    }
  } finally {
    file.close();
  }
}

/** The difference between a received store's position and the announced one; undefined if none. */
function differenceOf(
  position: Position,
  { index, term, confState }: Pick<Position, "index"> & Partial<Position>,
): string | undefined {
  if (position.index !== index)
    return `it holds the state at index ${position.index}, announced was ${index}`;
  if (term !== undefined && position.term !== term)
    return `it holds the state of term ${position.term}, announced was ${term}`;
  if (confState === undefined) return undefined;
  const [held, expected] = [position.confState, confState].map((state) =>
    toHex(raftpb.ConfState.encode(state)),
  );
  return held === expected
    ? undefined
    : "it holds another configuration than the one that was announced";
}
