/** Receives the store of another member, to be put in the place of this one. */
import type { Disk, Keyspace, KeyspaceOpener } from "@quorate/host";
import { raftpb, toHex } from "@quorate/proto";
import { Backend, Bucket } from "./backend/backend.ts";
import { incomingDirectory, markReceived } from "./backend/directories.ts";
import { type Position, readPosition } from "./backend/meta.ts";
import { readStorageVersion } from "./backend/storage-version.ts";
import { decodeSnapshot, SnapshotStreamError } from "./snapshot-stream.ts";

/**
 * Receives a snapshot into a directory beside the current store. When it resolves, the directory is
 * complete, verified and marked as such; installReceived then replaces the store with it. A failure
 * leaves nothing that could be taken for complete.
 * @param index the expected index of the store
 * @param announced its expected term and configuration, if announced
 * @throws SnapshotStreamError, also for another position than `index`; DiskError; the errors of
 *   `chunks`
 */
export async function receiveSnapshot(
  deps: { keyspaces: KeyspaceOpener; disk: Disk },
  dir: string,
  index: number,
  chunks: AsyncIterable<Uint8Array>,
  progress?: (bytes: number) => void,
  announced: Partial<Position> = {},
): Promise<void> {
  const incoming = incomingDirectory(dir, index);
  deps.disk.remove(incoming);
  const keyspace: Keyspace = await deps.keyspaces.open(incoming, { create: true });
  try {
    const lengthBytes = await decodeSnapshot(chunks, keyspace, progress);
    const backend = new Backend(keyspace);
    const meta = (key: Uint8Array) => backend.get(Bucket.meta, key);
    readStorageVersion(meta, incoming);
    const position = readPosition(meta, incoming);
    const difference = differenceOf(position, { ...announced, index });
    if (difference !== undefined) throw new SnapshotStreamError(lengthBytes, difference);
  } catch (error) {
    await keyspace.close().catch(() => {});
    deps.disk.remove(incoming);
    throw error;
  }
  await keyspace.close();
  markReceived(deps.disk, dir, index);
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
