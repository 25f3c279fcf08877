/** Looking up a node of the v2 tree in the keys of v3, at one revision. */
import type { Mvcc } from "@quorate/store";
import { directoryKey, nodeKey, type Path } from "./keys.ts";
import { decodeNode, type NodeRecord } from "./record.ts";

/** What a path leads to. */
export type Found =
  | { readonly kind: "file" | "dir"; readonly node: NodeRecord }
  | { readonly kind: "root" }
  /** The first `at` names exist, as directories; the next does not. */
  | { readonly kind: "missing"; readonly at: number }
  /** The first `at` names exist; the last of them is a file. */
  | { readonly kind: "notDir"; readonly at: number };

/** The node at a path; undefined if it does not exist, whatever is above it. */
export function nodeAt(mvcc: Mvcc, path: Path, revision: number): NodeRecord | undefined {
  const record = mvcc.recordAt(nodeKey(path), revision);
  return record === undefined ? undefined : decodeNode(record);
}

/**
 * Walks a path from the root on. A node counts only if all directories above it exist: a program of
 * v3 may have deleted one of them without what is below.
 */
export function lookUp(mvcc: Mvcc, path: Path, revision: number): Found {
  if (path.length === 0) return { kind: "root" };
  for (let at = 0; at < path.length; at++) {
    const name = path.slice(0, at + 1);
    const node = nodeAt(mvcc, name, revision);
    if (node === undefined) return { kind: "missing", at };
    const isDir = node.isDir && mvcc.view.get(directoryKey(name), revision) !== undefined;
    if (node.isDir && !isDir) return { kind: "missing", at };
    if (at + 1 === path.length) return { kind: isDir ? "dir" : "file", node };
    if (!isDir) return { kind: "notDir", at: at + 1 };
  }
  throw new Error("unreachable");
}
