/**
 * Reads a directory as one JSON text, at one revision: its children, or all that is below it. The
 * keys come in pages through the Range of v3, each of which is a bounded step; hidden nodes (names
 * that begin with "_") are left out with all that is below them.
 */
import { fromLatin1, KeyValue, KVService, RangeRequest, toLatin1 } from "@quorate/proto";
import type { HttpCaller } from "./calls.ts";
import { V2Error } from "./errors.ts";
import { children, type Path, pathOfKey, subtree } from "./keys.ts";
import type { V2Limits } from "./limits.ts";
import { type NodeView, nodeHead, nodeJson, nodeTail, viewOf } from "./node-json.ts";
import { nodeOf } from "./record.ts";

/** Keys of a page: some 2 ms. */
const PAGE_KEYS = 256;
/** Nodes of a tree that are written in one turn of the event loop. */
const NODES_PER_TURN = 2000;

/** What a listing needs. */
export interface ListingDeps {
  readonly limits: Pick<V2Limits, "maxListedNodes" | "maxListedBytes">;
  readonly caller: HttpCaller;
  readonly wallMs: number;
  /** Counts bytes within the budget of the connection; false if there is none left. */
  hold(sizeBytes: number): boolean;
  /** Resolves in the next turn of the event loop. */
  nextTurn(): Promise<void>;
}

/** A directory while its nodes are collected. */
interface Directory {
  readonly view: NodeView;
  /** JSON of files, and directories, in the order of their names. */
  readonly nodes: (string | Directory)[];
}

/**
 * The nodes in a directory, each as `{...}`, joined by commas, in pieces of bounded size.
 * @throws V2Error, StatusError of Range
 */
export async function listChildren(
  deps: ListingDeps,
  path: Path,
  revision: number,
  isRecursive: boolean,
): Promise<string[]> {
  const root: Directory = { view: { path, modifiedIndex: 0, createdIndex: 0 }, nodes: [] };
  const directories = new Map<string, Directory>([[path.join("/"), root]]);
  const { maxListedNodes, maxListedBytes } = deps.limits;
  let nodes = 0;
  let bytes = 0;
  // Deeper keys may come before those of the directories above them.
  const early: { parent: string; node: string | Directory }[] = [];
  const range = isRecursive ? subtree(path) : children(path);
  for await (const kvs of pages(deps.caller, range, revision)) {
    const before = bytes;
    for (const kv of kvs) {
      const name = pathOfKey(toLatin1(kv.key));
      if (name === undefined || isHidden(name, path.length)) continue;
      const parent = name.slice(0, -1).join("/");
      const view = viewOf(name, nodeOf(kv), deps.wallMs);
      const isOpen = view.isDir === true && isRecursive;
      const node = isOpen ? { view, nodes: [] } : nodeJson(view);
      bytes += typeof node === "string" ? node.length : 100 + kv.key.length;
      if (++nodes > maxListedNodes || bytes > maxListedBytes) throw tooMany(deps.limits, revision);
      if (typeof node !== "string") directories.set(name.join("/"), node);
      const above = directories.get(parent);
      if (above === undefined) early.push({ parent, node });
      else above.nodes.push(node);
    }
    if (!deps.hold(bytes - before))
      throw new V2Error("RaftInternal", "lists that are being read hold too much memory", revision);
  }
  // Names of one directory are in their order all the same: its nodes all came early, or none.
  for (const { parent, node } of early) directories.get(parent)?.nodes.push(node);
  return written(deps, root);
}

function tooMany(limits: ListingDeps["limits"], revision: number): V2Error {
  const { maxListedNodes, maxListedBytes } = limits;
  const reason = `the directory has more than ${maxListedNodes} nodes or ${maxListedBytes} bytes`;
  return new V2Error("RaftInternal", reason, revision);
}

function isHidden(name: Path, depth: number): boolean {
  return name.some((one, at) => at >= depth && one.startsWith("_"));
}

async function* pages(
  caller: HttpCaller,
  { key, rangeEnd }: { key: string; rangeEnd: string },
  revision: number,
): AsyncGenerator<readonly KeyValue[]> {
  let from = fromLatin1(key);
  for (;;) {
    const request = RangeRequest.create({
      key: from,
      rangeEnd: fromLatin1(rangeEnd),
      limit: PAGE_KEYS,
      revision,
      serializable: true,
    });
    const { kvs, more } = await caller.call(KVService.methods.Range, request);
    const decoded = kvs.map((kv) => KeyValue.decode(kv));
    yield decoded;
    const last = decoded.at(-1);
    if (!more || last === undefined || caller.cancelled) return;
    from = fromLatin1(`${toLatin1(last.key)}\0`);
  }
}

/** Walks the tree without recursion, in slices. */
async function written(deps: ListingDeps, root: Directory): Promise<string[]> {
  const pieces: string[] = [];
  const stack: { directory: Directory; at: number; head: string }[] = [
    { directory: root, at: 0, head: "" },
  ];
  let steps = 0;
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    if (++steps % NODES_PER_TURN === 0) await deps.nextTurn();
    const { directory } = top;
    const node = directory.nodes[top.at];
    if (node === undefined) {
      stack.pop();
      if (stack.length === 0) break;
      const end = directory.nodes.length > 0 ? "]" : "";
      pieces.push(end + nodeTail(directory.view, top.head));
      continue;
    }
    const comma = top.at > 0 ? "," : "";
    top.at++;
    if (typeof node === "string") pieces.push(comma + node);
    else {
      const head = nodeHead(node.view);
      pieces.push(comma + head + (node.nodes.length > 0 ? ',"nodes":[' : ""));
      stack.push({ directory: node, at: 0, head });
    }
  }
  return pieces;
}
