/**
 * Cuts a history into parts that have no key in common, each of which can be judged alone: a
 * history is linearizable if and only if the history of each of its objects is. A key is an object;
 * operations on several keys join theirs into one.
 */
import { defined } from "@quorate/proto";
import type { ModelOp, ModelRange, ModelRequest } from "../base/model.ts";
import type { Operation } from "../base/operation.ts";

/** What a request may look at or change. */
export interface Touched {
  readonly keys: readonly string[];
  readonly ranges: readonly ModelRange[];
}

/** The keys that may hang on each lease: those that some request would put with it. */
export type LeaseKeys = ReadonlyMap<string, ReadonlySet<string>>;

/** An operation that is no transaction. */
export type SimpleOp = Exclude<ModelOp, { kind: "txn" }>;

/** The operations of a request, those of both branches of a transaction included. */
export function opsOf(request: ModelRequest): readonly SimpleOp[] {
  if (request.kind === "revoke") return [];
  return request.kind === "txn"
    ? [...request.success, ...request.failure].flatMap(opsOf)
    : [request];
}

export function leaseKeysOf(operations: readonly Operation[]): LeaseKeys {
  const keys = new Map<string, Set<string>>();
  for (const { request } of operations) {
    for (const op of opsOf(request)) {
      if (op.kind !== "put" || op.lease === undefined) continue;
      const known = keys.get(op.lease);
      if (known === undefined) keys.set(op.lease, new Set([op.key]));
      else known.add(op.key);
    }
  }
  return keys;
}

/** All keys and ranges in a request, those of both branches of a transaction included. */
export function touched(request: ModelRequest, leases: LeaseKeys): Touched {
  if (request.kind === "revoke")
    return { keys: [...(leases.get(request.lease) ?? [])], ranges: [] };
  const keys: string[] = request.kind === "txn" ? request.compares.map(({ key }) => key) : [];
  const ranges: ModelRange[] = [];
  for (const op of opsOf(request)) {
    if (op.kind === "put" || op.end === "") keys.push(op.key);
    else ranges.push(op);
  }
  return { keys, ranges };
}

/**
 * The parts, each with its operations in their order and with its keys, ascending. Who touches no
 * key that is known is a part alone.
 */
export function partsOf(
  operations: readonly Operation[],
): { operations: Operation[]; keys: string[] }[] {
  const parent = new Map<string, string>();
  const find = (key: string): string => {
    let root = key;
    while (parent.get(root) !== root) root = parent.get(root) ?? root;
    for (let at = key; at !== root; ) {
      const next = parent.get(at)!;
      parent.set(at, root);
      at = next;
    }
    return root;
  };
  const leases = leaseKeysOf(operations);
  const all = operations.map(({ request }) => touched(request, leases));
  for (const { keys } of all) for (const key of keys) parent.set(key, key);
  // What an answer shows is there too, whichever client wrote it.
  for (const { outcome } of operations) {
    if (outcome?.kind !== "answered") continue;
    for (const one of outcome.answer.answers)
      if (one.kind === "range") for (const { key } of one.kvs) parent.set(key, key);
  }
  const sorted = [...parent.keys()].sort();
  const within = ({ key, end }: ModelRange) => sorted.filter((one) => one >= key && one < end);
  const firsts = all.map(({ keys, ranges }) => {
    const together = [...keys, ...ranges.flatMap(within)];
    for (let i = 1; i < together.length; i++) parent.set(find(together[i]), find(together[0]));
    return together[0];
  });
  const parts = new Map<string, { operations: Operation[]; keys: string[] }>();
  for (const key of sorted) {
    const root = find(key);
    const part = parts.get(root);
    if (part === undefined) parts.set(root, { operations: [], keys: [key] });
    else part.keys.push(key);
  }
  operations.forEach((op, i) => {
    if (firsts[i] !== undefined)
      defined(parts.get(find(firsts[i])), "the part").operations.push(op);
  });
  const lonely = operations
    .filter((_, i) => firsts[i] === undefined)
    .map((op) => ({ operations: [op], keys: [] }));
  return [...parts.values(), ...lonely].filter((part) => part.operations.length > 0);
}
