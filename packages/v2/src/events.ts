/**
 * The events of v2 from the history of v3's keys: one for each revision at most.
 *
 *     a node written             its record says by which action
 *     nodes deleted              the topmost one is the event's; the action is
 *                                - that of the note which the same revision wrote, if any
 *                                - "expire" if the node had a lease: its end leaves no note
 *                                - "delete"
 */
import { KeyValue, toLatin1 } from "@quorate/proto";
import type { Mvcc } from "@quorate/store";
import { deletionKey, nodeKey, type Path, pathOfKey } from "./keys.ts";
import { eventJson, viewOf } from "./node-json.ts";
import { nodeOf } from "./record.ts";
import { nodeAt } from "./tree.ts";

/** A change of a key. */
export interface KeyChange {
  readonly isDeleted: boolean;
  readonly kv: KeyValue;
}

/** What a wait is for. */
export interface Watched {
  readonly path: Path;
  readonly isRecursive: boolean;
}

/**
 * The event of a revision as a line of JSON; undefined if the wait is not for it.
 * @param changes of that revision, of keys that are watched
 */
export function eventOf(
  mvcc: Mvcc,
  changes: readonly KeyChange[],
  watched: Watched,
  wallMs: number,
): string | undefined {
  const deleted: string[][] = [];
  for (const { isDeleted, kv } of changes) {
    const path = pathOfKey(toLatin1(kv.key));
    if (path === undefined) continue;
    if (isDeleted) deleted.push(path);
    else {
      const event = writeEvent(mvcc, path, kv, watched, wallMs);
      if (event !== undefined) return event;
    }
  }
  const [path] = deleted;
  const [change] = changes;
  if (path === undefined || change === undefined) return undefined;
  return deletionEvent(mvcc, path, change.kv.modRevision, watched, wallMs);
}

function writeEvent(
  mvcc: Mvcc,
  path: Path,
  kv: KeyValue,
  watched: Watched,
  wallMs: number,
): string | undefined {
  const node = nodeOf(kv);
  if (node.action === undefined || node.isRefresh || !isShown(path, watched)) return undefined;
  const revision = kv.modRevision;
  const before = node.action === "create" ? undefined : nodeAt(mvcc, path, revision - 1);
  const view = viewOf(path, node, wallMs);
  return eventJson(
    node.action,
    { ...view, ttlSeconds: node.ttlSeconds, modifiedIndex: revision },
    before === undefined ? undefined : viewOf(path, before, wallMs),
  );
}

function deletionEvent(
  mvcc: Mvcc,
  path: Path,
  revision: number,
  watched: Watched,
  wallMs: number,
): string | undefined {
  let top: Path = path;
  for (let length = path.length - 1; length > 0; length--) {
    const above = path.slice(0, length);
    if (mvcc.view.get(nodeKey(above), revision) !== undefined) break;
    if (mvcc.view.get(nodeKey(above), revision - 1) !== undefined) top = above;
  }
  if (!isShown(top, watched)) return undefined;
  const before = nodeAt(mvcc, top, revision - 1);
  const action = noteAt(mvcc, top, revision) ?? (before?.lease ? "expire" : "delete");
  return eventJson(
    action,
    {
      path: top,
      isDir: before?.isDir,
      modifiedIndex: revision,
      createdIndex: before?.createdIndex ?? 0,
    },
    before === undefined ? undefined : viewOf(top, before, wallMs),
  );
}

/** The action that a revision noted for the deletion of a node. */
function noteAt(mvcc: Mvcc, path: Path, revision: number): string | undefined {
  const record = mvcc.recordAt(deletionKey(path.slice(0, -1)), revision);
  if (record === undefined) return undefined;
  const { value, modRevision } = KeyValue.decode(record);
  const [action, ...name] = toLatin1(value).split(" ");
  return modRevision === revision && name.join(" ") === path[path.length - 1] ? action : undefined;
}

/**
 * Whether a wait sees the event of a path: a hidden node, or what is in one, is shown to a wait for
 * the node itself or one below it (etcd: watcher_hub.go, isHidden).
 */
function isShown(path: Path, { path: watched, isRecursive }: Watched): boolean {
  if (path.length <= watched.length) return true;
  return isRecursive && !path.slice(watched.length).some((name) => name.startsWith("_"));
}
