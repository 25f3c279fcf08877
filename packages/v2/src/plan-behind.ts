/**
 * Plans of writes behind others that are on their way (chains.ts). Their comparisons are by value:
 * the revision of what is not applied is not known.
 */
import type { Mvcc } from "@quorate/store";
import type { KeyRequest } from "./key-request.ts";
import { directoryKey, pathText } from "./keys.ts";
import { createInOrder, type Expiry, type Plan, rewrite, type Tail } from "./plan-parts.ts";
import { put, sameValue } from "./txn-parts.ts";

/**
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
