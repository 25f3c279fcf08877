/**
 * How a write of the v2 API becomes one transaction of v3, by what is applied here now. The
 * comparisons of the transaction hold as long as the same plan would be made, so a transaction
 * whose comparisons fail has changed nothing, and another plan is made from what changed.
 *
 *     set /a/f           /a is a directory, /a/f is none      -> put; the node before comes back
 *     set /a/b/f         /a is, /a/b does not exist           -> put /a/b and /a/b/f
 *     create, POST       ... and the node does not exist
 *     update, CAS, CAD   the node is as it was read
 *     rmdir              ... and has no children
 *
 * Which error a request gets, and in which order the checks come, is etcd 3.4's:
 * etcdserver/apply_v2.go and etcdserver/api/v2store/store.go.
 */
import {
  type Compare,
  EMPTY,
  fromLatin1,
  KeyValue,
  type RequestOp,
  toLatin1,
} from "@quorate/proto";
import type { Mvcc } from "@quorate/store";
import { V2Error } from "./errors.ts";
import type { KeyRequest } from "./key-request.ts";
import {
  children,
  childrenWithoutDeletion,
  deletionKey,
  directoryKey,
  nodeKey,
  type Path,
  pathText,
  subtree,
  without,
} from "./keys.ts";
import {
  createInOrder,
  type Expiry,
  inDirectory,
  type Note,
  newNode,
  type Plan,
  rewrite,
  type Tail,
  writes,
} from "./plan-parts.ts";
import { encodeNode, type NodeRecord } from "./record.ts";
import { type Found, lookUp } from "./tree.ts";
import {
  absent,
  anyOf,
  exists,
  put,
  remove,
  removeAll,
  sameValue,
  unchanged,
} from "./txn-parts.ts";

/** Deleted keys below a missing directory that are looked through for some that still exist. */
const MAX_ORPHAN_KEYS = 64;

/** Plans one request by one state of the store. */
export class Planner {
  readonly #mvcc: Mvcc;
  readonly #revision: number;

  constructor(mvcc: Mvcc) {
    this.#mvcc = mvcc;
    this.#revision = mvcc.currentRevision;
  }

  /**
   * @param expiry of a request with a TTL; a plan without it only shows whether the request can be
   * planned
   * @throws V2Error
   */
  plan(request: KeyRequest, expiry: Expiry | undefined): Plan {
    const { method, prevExist, prevIndex, prevValue } = request;
    const compares = prevIndex > 0 || prevValue !== "";
    if (method === "DELETE")
      return compares ? this.#compareAndDelete(request) : this.#delete(request);
    if (method === "POST") return this.#createInOrder(request, expiry);
    if (prevExist === false) return this.#create(request, expiry);
    if (compares) return this.#compareAndSwap(request, expiry);
    return prevExist === true ? this.#update(request, expiry) : this.#set(request, expiry);
  }

  #error(code: ConstructorParameters<typeof V2Error>[0], reason: string): V2Error {
    return new V2Error(code, reason, this.#revision);
  }

  /** @throws V2Error for a path that leads through a file */
  #lookUp(path: Path): Exclude<Found, { kind: "notDir" }> {
    const found = lookUp(this.#mvcc, path, this.#revision);
    if (found.kind === "notDir") throw this.#error("NotDir", pathText(path.slice(0, found.at)));
    return found;
  }

  /** The node of a path that must exist. @throws V2Error */
  #existing(path: Path): Exclude<Found, { kind: "notDir" | "missing" }> {
    const found = this.#lookUp(path);
    if (found.kind === "missing")
      throw this.#error("KeyNotFound", pathText(path.slice(0, found.at + 1)));
    return found;
  }

  #refuseRoot(path: Path): void {
    if (path.length === 0) throw this.#error("RootReadOnly", "/");
  }

  /** What makes a node of a path whose last names do not exist, from name `at` on. */
  #creation(path: Path, at: number): { compare: Compare[]; success: RequestOp[] } {
    const top = path.slice(0, at + 1);
    const compare = at === 0 ? [] : [exists(directoryKey(path.slice(0, at)))];
    const success: RequestOp[] = [];
    const keys = [nodeKey(path), directoryKey(path)];
    for (let end = at + 1; end < path.length; end++) {
      const directory = path.slice(0, end);
      keys.push(nodeKey(directory), directoryKey(directory));
      const node = { isDir: true, action: undefined, value: "" };
      success.push(put(nodeKey(directory), encodeNode(node)), put(directoryKey(directory), EMPTY));
    }
    const range = subtree(top);
    const few = { single: false as const, key: range.key, to: range.rangeEnd };
    const left = this.#mvcc.view.few(few, this.#revision, MAX_ORPHAN_KEYS, Number.MAX_SAFE_INTEGER);
    if (left?.length === 0) {
      if (top.length < path.length) compare.push(absent(nodeKey(top)));
      else compare.push(absent(directoryKey(path)));
    } else {
      // What a program of v3 left below a directory that it deleted must not come back.
      compare.push(absent(nodeKey(top)));
      success.push(...without(range, keys).map(removeAll));
    }
    return { compare, success };
  }

  #set(request: KeyRequest, expiry: Expiry | undefined): Plan {
    const { path, isDir, isRefresh } = request;
    const found = isRefresh ? this.#existing(path) : this.#lookUp(path);
    this.#refuseRoot(path);
    if (found.kind === "dir") throw this.#error("NotFile", pathText(path));
    const before = found.kind === "file" ? found.node : undefined;
    const value = isRefresh && before !== undefined ? before.value : request.value;
    const node = newNode({ isDir, action: "set", value, isRefresh }, expiry);
    const { compare, success } =
      found.kind === "missing"
        ? this.#creation(path, found.at)
        : { compare: inDirectory(path), success: [] };
    if (isDir || isRefresh) compare.push(unchanged(nodeKey(path), before?.revision ?? 0));
    else if (before !== undefined) compare.push(absent(directoryKey(path)));
    success.push(...writes(path, node, expiry, !isDir && !isRefresh));
    const fixed = isDir || isRefresh;
    return {
      action: "set",
      path,
      compare,
      success,
      failure: [],
      node,
      before: fixed ? before : "response",
    };
  }

  #create(request: KeyRequest, expiry: Expiry | undefined): Plan {
    const { path, isDir, value } = request;
    this.#refuseRoot(path);
    const found = this.#lookUp(path);
    if (found.kind !== "missing") throw this.#error("NodeExist", pathText(path));
    const node = newNode({ isDir, action: "create", value }, expiry);
    const { compare, success } = this.#creation(path, found.at);
    compare.push(absent(nodeKey(path)));
    success.push(...writes(path, node, expiry));
    return { action: "create", path, compare, success, failure: [], node, before: undefined };
  }

  /** Names are in the order of the revisions; the directory keeps the last one. */
  #createInOrder(request: KeyRequest, expiry: Expiry | undefined): Plan {
    const directory = request.path;
    const found = this.#lookUp(directory);
    if (found.kind === "file") throw this.#error("NotDir", pathText(directory));
    const note =
      found.kind === "missing" ? this.#newNames(directory, found.at) : this.#names(directory);
    const plan = createInOrder(this.#mvcc, request, expiry, note);
    if (plan === undefined) throw this.#error("NodeExist", pathText(directory));
    return plan;
  }

  /** The directory does not exist from name `at` on. */
  #newNames(directory: Path, at: number): Note {
    const key = directoryKey(directory);
    return {
      last: 0,
      parts: (path, value) => {
        const { compare, success } = this.#creation(path, at);
        return { compare, success: replacedPut(success, key, value) };
      },
    };
  }

  #names(directory: Path): Note {
    const key = directoryKey(directory);
    const record = this.#mvcc.recordAt(key, this.#revision);
    const { number, revision } = record === undefined ? NO_NAME : lastNameOf(record);
    return {
      last: number,
      parts: (_, value) => ({
        compare: [unchanged(key, revision)],
        success: [put(key, value, { ignoreLease: record !== undefined })],
      }),
    };
  }

  #update(request: KeyRequest, expiry: Expiry | undefined): Plan {
    const { path } = request;
    this.#refuseRoot(path);
    const found = this.#existing(path);
    if (found.kind === "root") throw this.#error("RootReadOnly", "/");
    if (found.kind === "dir" && request.value !== "") throw this.#error("NotFile", pathText(path));
    return rewrite(request, "update", found.node, expiry);
  }

  #compareAndSwap(request: KeyRequest, expiry: Expiry | undefined): Plan {
    const { path } = request;
    this.#refuseRoot(path);
    const found = this.#existing(path);
    if (found.kind !== "file") throw this.#error("NotFile", pathText(path));
    this.#compareNode(request, found.node);
    return rewrite(request, "compareAndSwap", found.node, expiry);
  }

  #delete({ path, isDir, isRecursive }: KeyRequest): Plan {
    this.#refuseRoot(path);
    const found = this.#existing(path);
    if (found.kind === "root") throw this.#error("RootReadOnly", "/");
    const { kind, node: before } = found;
    if (kind === "dir" && !isDir && !isRecursive) throw this.#error("NotFile", pathText(path));
    const compare = [unchanged(nodeKey(path), before.revision)];
    const failure: RequestOp[] = [];
    if (kind === "dir" && !isRecursive) {
      for (const range of childrenWithoutDeletion(path)) {
        compare.push(absent(range.key, range.rangeEnd));
        failure.push(anyOf(range));
      }
    }
    const success = [remove(nodeKey(path))];
    if (kind === "dir") success.push(removeAll(subtree(path)));
    if (before.lease !== 0n) success.push(note(path, "delete"));
    return { action: "delete", path, compare, success, failure, node: undefined, before };
  }

  #compareAndDelete(request: KeyRequest): Plan {
    const { path } = request;
    const found = this.#existing(path);
    if (found.kind !== "file") throw this.#error("NotFile", pathText(path));
    this.#compareNode(request, found.node);
    const before = found.node;
    const compare = [unchanged(nodeKey(path), before.revision)];
    const success = [remove(nodeKey(path)), note(path, "compareAndDelete")];
    const action = "compareAndDelete";
    return { action, path, compare, success, failure: [], node: undefined, before };
  }

  /** @throws V2Error TestFailed with etcd's reason (store.go, getCompareFailCause) */
  #compareNode({ prevValue, prevIndex }: KeyRequest, node: NodeRecord): void {
    const index = prevIndex === 0 || prevIndex === node.modifiedIndex;
    const value = prevValue === "" || prevValue === node.value;
    if (index && value) return;
    const values = `[${prevValue} != ${node.value}]`;
    const indexes = `[${prevIndex} != ${node.modifiedIndex}]`;
    const reason = index ? values : value ? indexes : `${values} ${indexes}`;
    throw this.#error("TestFailed", reason);
  }
}

/** A directory that has children was not deleted. */
export function isNotEmpty(plan: Plan, counts: readonly number[]): boolean {
  return plan.failure.length > 0 && counts.some((count) => count > 0);
}

/** The range whose permission a write of a path needs, where it is not one key. */
export function writtenRange(path: Path): { key: string; rangeEnd: string } {
  return path.length === 0 ? children(path) : { key: nodeKey(path), rangeEnd: "" };
}

/** Which action deleted a node, where its lease or nothing at all would suggest another. */
function note(path: Path, action: "delete" | "compareAndDelete"): RequestOp {
  return put(deletionKey(path.slice(0, -1)), fromLatin1(`${action} ${path[path.length - 1]}`));
}

/** The operations with another value in the put of `key`. */
function replacedPut(ops: readonly RequestOp[], key: string, value: Uint8Array): RequestOp[] {
  return ops.map((op) => {
    const { request } = op;
    const isIt = request?.case === "requestPut" && toLatin1(request.value.key) === key;
    return isIt ? put(key, value) : op;
  });
}

const NO_NAME = { number: 0, revision: 0 };

/** The number in the key of a directory whose last POST it notes. */
function lastNameOf(record: Uint8Array): { number: number; revision: number } {
  const { value, modRevision } = KeyValue.decode(record);
  const match = /^last=(\d{1,15})$/.exec(toLatin1(value));
  return { number: match === null ? 0 : Number(match[1]), revision: modRevision };
}

/**
 * Plans of writes behind others that are on their way (chains.ts). Their comparisons are by value:
 * the revision of what is not applied is not known.
 *
 * The chain of a request; undefined for a write that is planned by what is applied, because it
 * depends on a revision or does not read the node.
 */
export function chainOf(request: KeyRequest): string | undefined {
  const { method, path, prevExist, prevIndex, prevValue } = request;
  if (method === "POST") return `in ${pathText(path)}`;
  if (method !== "PUT" || prevIndex > 0 || prevExist === false || path.length === 0)
    return undefined;
  return prevExist === true || prevValue !== "" ? pathText(path) : undefined;
}

/** The plan of a request of a chain; undefined where it would fail behind the chain's tail. */
export function planBehind(
  mvcc: Mvcc,
  request: KeyRequest,
  expiry: Expiry | undefined,
  tail: Tail,
): Plan | undefined {
  const { path, prevValue } = request;
  if (tail.kind === "directory") {
    const key = directoryKey(path);
    return createInOrder(mvcc, request, expiry, {
      last: tail.number,
      parts: (_, value) => ({
        compare: [sameValue(key, tail.value)],
        success: [put(key, value, { ignoreLease: true })],
      }),
    });
  }
  const { node } = tail;
  if (prevValue === "") return rewrite(request, "update", node, expiry, tail);
  if (node.value !== prevValue) return undefined;
  return rewrite(request, "compareAndSwap", node, expiry, tail);
}
