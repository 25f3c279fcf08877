/**
 * The end of a directory's TTL: all that is below it goes with it, in one transaction. A lease ends
 * with its own keys alone, so the leader has the directory deleted before it revokes the lease.
 */
import { TxnRequest } from "@quorate/proto";
import type { Store } from "@quorate/store";
import { directoryKey, isTreeKey, nodeKey, type Path, pathOfKey, subtree } from "./keys.ts";
import { attached, remove, removeAll } from "./txn-parts.ts";

/** Keys of a directory's lease: the node's, and the one that says that it is a directory. */
const DIRECTORY_KEYS = 2;

/**
 * The transaction that deletes the directory of a lease, if it is still the lease's then.
 * @returns undefined for a lease that has no directory
 */
export function directoryExpiry({ lessor, mvcc }: Store, lease: bigint): Uint8Array | undefined {
  if (lessor.get(lease)?.keyCount !== DIRECTORY_KEYS) return undefined;
  for (const key of lessor.keysOf(lease)) {
    const path = isTreeKey(key) ? pathOfKey(key) : undefined;
    if (path !== undefined && mvcc.view.get(directoryKey(path)) !== undefined)
      return deletionOf(path, lease);
  }
  return undefined;
}

function deletionOf(path: Path, lease: bigint): Uint8Array {
  return TxnRequest.encode({
    compare: [attached(nodeKey(path), lease)],
    success: [remove(nodeKey(path)), removeAll(subtree(path))],
    failure: [],
  });
}
