/** Nodes and events as v2's responses have them (etcd 3.4: v2store/node_extern.go, event.go). */
import { goString, goTime } from "./json.ts";
import { type Path, pathText } from "./keys.ts";
import type { NodeRecord } from "./record.ts";

/** A node in a response; what is undefined or 0 is left out. */
export interface NodeView {
  readonly path: Path;
  readonly value?: string | undefined;
  readonly isDir?: boolean | undefined;
  readonly expiresMs?: number | undefined;
  readonly ttlSeconds?: number | undefined;
  readonly modifiedIndex: number;
  readonly createdIndex: number;
}

/** Up to the place where the nodes of a directory are listed. */
export function nodeHead(node: NodeView): string {
  const { path, value, isDir, expiresMs, ttlSeconds } = node;
  const fields: string[] = [];
  if (path.length > 0) fields.push(`"key":${goString(pathText(path))}`);
  if (value !== undefined) fields.push(`"value":${goString(value)}`);
  if (isDir === true) fields.push('"dir":true');
  if (expiresMs !== undefined) fields.push(`"expiration":"${goTime(expiresMs)}"`);
  if (ttlSeconds !== undefined && ttlSeconds > 0) fields.push(`"ttl":${ttlSeconds}`);
  return `{${fields.join(",")}`;
}

/** From there to the end. @param head what nodeHead returned */
export function nodeTail({ modifiedIndex, createdIndex }: NodeView, head: string): string {
  let text = "";
  if (modifiedIndex > 0) text += `,"modifiedIndex":${modifiedIndex}`;
  if (createdIndex > 0) text += `,"createdIndex":${createdIndex}`;
  return `${head.length === 1 ? text.slice(1) : text}}`;
}

/** A node without the nodes in it. */
export function nodeJson(node: NodeView): string {
  const head = nodeHead(node);
  return head + nodeTail(node, head);
}

/**
 * A node as it is read.
 * @param wallMs now: the TTL is what is left of it, rounded up; 0 once it has passed
 */
export function viewOf(path: Path, node: NodeRecord, wallMs: number): NodeView {
  const { isDir, value, expiresMs, modifiedIndex, createdIndex } = node;
  return {
    path,
    expiresMs,
    modifiedIndex,
    createdIndex,
    value: isDir ? undefined : value,
    isDir,
    ttlSeconds: expiresMs === undefined ? undefined : secondsLeft(expiresMs, wallMs),
  };
}

function secondsLeft(expiresMs: number, wallMs: number): number {
  return Math.max(0, Math.ceil((expiresMs - wallMs) / 1000));
}

/** An event; a response of a write is one too. */
export function eventJson(
  action: string,
  node: NodeView | undefined,
  prevNode: NodeView | undefined,
): string {
  let text = `{"action":"${action}"`;
  if (node !== undefined) text += `,"node":${nodeJson(node)}`;
  if (prevNode !== undefined) text += `,"prevNode":${nodeJson(prevNode)}`;
  return `${text}}\n`;
}
