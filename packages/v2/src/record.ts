/**
 * What a node's key holds: a line of text, and the value of a file behind it.
 *
 *     file set\nbar
 *     file update created=12 ttl=5 expires=1763837000123\nbar
 *     dir create\n
 *     dir -\n                                made on the way to a deeper node
 *
 *     set, create, update, compareAndSwap    what wrote it; "-": no event of its own
 *     created=R      the revision of its creation, where that is not the record's own
 *     modified=R     of a directory, whose updates change its TTL only (etcd: node.Write)
 *     ttl=S          seconds, as requested
 *     expires=MS     the wall clock's milliseconds, by the member that took the request
 *     refresh        written without waking waits
 *
 * Bytes of another form are a file with this value, which a program of v3 wrote.
 */
import { fromLatin1, KeyValue, toLatin1 } from "@quorate/proto";

export type WriteAction = "set" | "create" | "update" | "compareAndSwap";

/** A node at a revision. */
export interface NodeRecord {
  readonly isDir: boolean;
  readonly action: WriteAction | undefined;
  /** Latin1; "" for a directory. */
  readonly value: string;
  readonly createdIndex: number;
  readonly modifiedIndex: number;
  readonly ttlSeconds: number | undefined;
  readonly expiresMs: number | undefined;
  readonly isRefresh: boolean;
  /** Revision of the record; modifiedIndex is lower for a directory with another TTL. */
  readonly revision: number;
  /** 0n: none. */
  readonly lease: bigint;
}

/** A node to be written. Its indexes are the revision of the write where they are undefined. */
export interface NewNode {
  readonly isDir: boolean;
  readonly action: WriteAction | undefined;
  readonly value: string;
  readonly createdIndex?: number | undefined;
  readonly modifiedIndex?: number | undefined;
  readonly ttlSeconds?: number | undefined;
  readonly expiresMs?: number | undefined;
  readonly isRefresh?: boolean | undefined;
}

const HEAD: RegExp = new RegExp(
  [
    "^(file|dir) (set|create|update|compareAndSwap|-)",
    "(?: created=(\\d{1,16}))?(?: modified=(\\d{1,16}))?",
    "(?: ttl=(\\d{1,10}) expires=(\\d{1,16}))?( refresh)?$",
  ].join(""),
);
/** The longest head has some 120 characters. */
const MAX_HEAD_CHARS = 200;

/** The value of a node's key. */
export function encodeNode(node: NewNode): Uint8Array {
  let head = `${node.isDir ? "dir" : "file"} ${node.action ?? "-"}`;
  if (node.createdIndex !== undefined) head += ` created=${node.createdIndex}`;
  if (node.modifiedIndex !== undefined) head += ` modified=${node.modifiedIndex}`;
  if (node.expiresMs !== undefined) head += ` ttl=${node.ttlSeconds} expires=${node.expiresMs}`;
  if (node.isRefresh === true) head += " refresh";
  return fromLatin1(`${head}\n${node.isDir ? "" : node.value}`);
}

/** @param record an encoded mvccpb.KeyValue */
export function decodeNode(record: Uint8Array): NodeRecord {
  return nodeOf(KeyValue.decode(record));
}

/** The node of a key and its value. */
export function nodeOf({ value, modRevision, lease }: KeyValue): NodeRecord {
  const text = toLatin1(value);
  const end = text.slice(0, MAX_HEAD_CHARS).indexOf("\n");
  const match = end < 0 ? null : HEAD.exec(text.slice(0, end));
  if (match === null) {
    return {
      isDir: false,
      action: "set",
      value: text,
      isRefresh: false,
      createdIndex: modRevision,
      modifiedIndex: modRevision,
      revision: modRevision,
      lease,
      ttlSeconds: undefined,
      expiresMs: undefined,
    };
  }
  const [, type, action, created, modified, ttl, expires, refresh] = match;
  const isDir = type === "dir";
  return {
    isDir,
    action: action === "-" ? undefined : (action as WriteAction),
    value: isDir ? "" : text.slice(end + 1),
    createdIndex: created === undefined ? modRevision : Number(created),
    modifiedIndex: modified === undefined ? modRevision : Number(modified),
    ttlSeconds: ttl === undefined ? undefined : Number(ttl),
    expiresMs: expires === undefined ? undefined : Number(expires),
    isRefresh: refresh !== undefined,
    revision: modRevision,
    lease,
  };
}
