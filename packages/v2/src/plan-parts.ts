/** What plans of v2's writes are made of, by whatever state they are planned. */
import { type Compare, EMPTY, fromLatin1, KeyValue, type RequestOp } from "@quorate/proto";
import type { Mvcc } from "@quorate/store";
import type { KeyRequest } from "./key-request.ts";
import { directoryKey, nodeKey, type Path } from "./keys.ts";
import { encodeNode, type NewNode, type NodeRecord, nodeOf, type WriteAction } from "./record.ts";
import { absent, exists, put, sameValue, unchanged } from "./txn-parts.ts";

export type Action = WriteAction | "delete" | "compareAndDelete";

/** One transaction. */
export interface Plan {
  readonly action: Action;
  readonly path: Path;
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  /** Reads that show why a directory was not deleted. */
  readonly failure: readonly RequestOp[];
  /** What is written; undefined: the node is deleted. */
  readonly node: NewNode | undefined;
  /**
   * The node before, where the comparisons hold it fast; undefined: there is none; "response": it
   * is the previous value of the last put.
   */
  readonly before: NodeRecord | "response" | undefined;
  /** What the next write of the chain can be planned by, before this one is applied. */
  readonly tail?: Tail | undefined;
}

/** The state when a plan has succeeded. */
export type Tail =
  /** A directory whose last name POST has noted. */
  | { readonly kind: "directory"; readonly number: number; readonly value: Uint8Array }
  /** A file. */
  | { readonly kind: "file"; readonly node: NodeRecord; readonly value: Uint8Array };

/** The expiry of what is written. */
export interface Expiry {
  readonly lease: bigint;
  readonly ttlSeconds: number;
  readonly expiresMs: number;
}

/**
 * The longest value that the next plan compares: it is in the log once more with each of them.
 */
export const MAX_TAIL_BYTES = 1024;
/** Names that POST passes over because they are taken. */
const MAX_TAKEN_NAMES = 1000;
/** Names of POST are as long (etcd: "%020s"). */
const ORDERED_NAME_CHARS = 20;

/** A node as a request has it, with its expiry. */
export function newNode(node: NewNode, expiry: Expiry | undefined): NewNode {
  if (expiry === undefined) return node;
  return { ...node, ttlSeconds: expiry.ttlSeconds, expiresMs: expiry.expiresMs };
}

/** The directory of a path exists. */
export function inDirectory(path: Path): Compare[] {
  return path.length === 1 ? [] : [exists(directoryKey(path.slice(0, -1)))];
}

/** What writes a node. @param prevKv the response has the node before */
export function writes(
  path: Path,
  node: NewNode,
  expiry: Expiry | undefined,
  prevKv = false,
): RequestOp[] {
  const lease = expiry?.lease ?? 0n;
  const write = put(nodeKey(path), encodeNode(node), { lease, prevKv });
  return node.isDir ? [put(directoryKey(path), EMPTY, { lease }), write] : [write];
}

/**
 * Writes a node over itself.
 * @param tail of a chain, if `before` is what a write on its way is about to leave
 */
export function rewrite(
  { path, value, isRefresh }: KeyRequest,
  action: WriteAction,
  before: NodeRecord,
  expiry: Expiry | undefined,
  tail?: Tail,
): Plan {
  const { isDir, createdIndex } = before;
  const key = nodeKey(path);
  const kept = { createdIndex, modifiedIndex: isDir ? before.modifiedIndex : undefined };
  const text = isRefresh ? before.value : value;
  const node = newNode({ isDir, action, value: text, isRefresh, ...kept }, expiry);
  const bytes = encodeNode(node);
  const lease = expiry?.lease ?? 0n;
  const success = [put(key, bytes, { lease, prevKv: tail !== undefined })];
  if (isDir) success.push(put(directoryKey(path), EMPTY, { ignoreValue: true, lease }));
  const same = tail === undefined ? unchanged(key, before.revision) : sameValue(key, tail.value);
  const compare = [...inDirectory(path), same];
  if (isDir) compare.push(exists(directoryKey(path)));
  return {
    action,
    path,
    compare,
    success,
    failure: [],
    node,
    before: tail === undefined ? before : "response",
    tail: isDir ? undefined : fileTail(bytes, lease),
  };
}

function fileTail(value: Uint8Array, lease: bigint): Tail | undefined {
  if (value.length > MAX_TAIL_BYTES) return undefined;
  return { kind: "file", node: nodeOf(KeyValue.create({ value, lease })), value };
}

/** How a name in order is noted in the key of its directory. */
export interface Note {
  /** The number of the last name, or 0. */
  readonly last: number;
  /**
   * What must hold for that, beside the name's absence, and what comes before the node.
   * @param path of the node
   * @param value what the directory's key is to hold
   */
  readonly parts: (
    path: Path,
    value: Uint8Array,
  ) => { readonly compare: readonly Compare[]; readonly success: readonly RequestOp[] };
}

/**
 * Makes a node whose name is in the order of the revisions.
 * @returns undefined where too many names are taken
 */
export function createInOrder(
  mvcc: Mvcc,
  { path: directory, isDir, value }: KeyRequest,
  expiry: Expiry | undefined,
  note: Note,
): Plan | undefined {
  const first = Math.max(mvcc.currentRevision, note.last) + 1;
  const free = freeName(mvcc, directory, first);
  if (free === undefined) return undefined;
  const path = [...directory, free.name];
  const node = newNode({ isDir, action: "create", value }, expiry);
  const noted = fromLatin1(`last=${free.number}`);
  const { compare, success } = note.parts(path, noted);
  return {
    action: "create",
    path,
    failure: [],
    node,
    before: undefined,
    compare: [...compare, absent(nodeKey(path))],
    success: [...success, ...writes(path, node, expiry)],
    tail: { kind: "directory", number: free.number, value: noted },
  };
}

function freeName(
  mvcc: Mvcc,
  directory: Path,
  first: number,
): { name: string; number: number } | undefined {
  for (let number = first; number < first + MAX_TAKEN_NAMES; number++) {
    const name = String(number).padStart(ORDERED_NAME_CHARS, "0");
    const key = nodeKey([...directory, name]);
    if (mvcc.view.get(key, mvcc.currentRevision) === undefined) return { name, number };
  }
  return undefined;
}
