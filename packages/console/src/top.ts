/**
 * The largest and busiest folders below a prefix: a walk through the index, which knows the size of
 * each key's record and when it was changed, so no value is read.
 */
import type { SliceTask } from "@quorate/member";
import { fromLatin1, toBase64 } from "@quorate/proto";
import type { KeyIndex, KeyRange, PinnedView, Steps } from "@quorate/store";
import { folderOf } from "./names.ts";

/** Folders that are counted by themselves; what is in others counts together. */
export const MAX_FOLDERS = 10_000;
/** A folder with a longer name counts with the others. */
export const MAX_FOLDER_CHARS = 1024;
/** Folders of a result by each of the three orders. */
const MOST = 50;

interface Folder {
  /** Latin1; the prefix itself for keys that are in no folder. */
  readonly name: string;
  keys: number;
  bytes: number;
  writes: number;
}

/** A folder of a result: keys, bytes of their records, and changes since the revision. */
export interface TopFolder extends Omit<Folder, "name"> {
  /** In base64. */
  readonly name: string;
}

export interface Top {
  readonly revision: number;
  readonly folders: readonly TopFolder[];
  readonly total: TopFolder;
  /** Those without a row of their own. */
  readonly others: TopFolder;
}

/** What is counted. */
export interface TopRequest {
  readonly prefix: string;
  readonly range: KeyRange;
  /** Changes after this revision count as writes. */
  readonly since: number;
}

/** Walks the keys as they are now. */
export function* topSteps(
  view: PinnedView,
  task: SliceTask,
  { prefix, range, since }: TopRequest,
): Steps<Top> {
  const folders = new Map<string, Folder>();
  const total = made("");
  const others = made("");
  const folderFor = (key: string): Folder => {
    const name = folderOf(prefix, key) ?? prefix;
    const known = folders.get(name);
    if (known !== undefined) return known;
    if (folders.size >= MAX_FOLDERS || name.length > MAX_FOLDER_CHARS) return others;
    task.charge(name.length + 64);
    const folder = made(name);
    folders.set(name, folder);
    return folder;
  };
  const at = view.revision;
  yield* view.each(range, at, (key, index) => {
    for (const counted of [folderFor(key), total]) count(counted, index, at, since);
    return true;
  });
  const all = [...folders.values()];
  const most = new Set<Folder>();
  for (const order of ["bytes", "keys", "writes"] as const) {
    yield;
    all.sort((a, b) => b[order] - a[order]);
    for (const folder of all.slice(0, MOST)) most.add(folder);
  }
  for (const folder of all)
    if (!most.has(folder)) {
      others.keys += folder.keys;
      others.bytes += folder.bytes;
      others.writes += folder.writes;
    }
  return {
    revision: at,
    folders: [...most].map(shown),
    total: shown(total),
    others: shown(others),
  };
}

function made(name: string): Folder {
  return { name, keys: 0, bytes: 0, writes: 0 };
}

function count(folder: Folder, index: KeyIndex, at: number, since: number): void {
  folder.keys++;
  folder.bytes += index.sizeAt(index.find(at));
  folder.writes += index.changesAfter(since);
}

function shown({ name, ...counts }: Folder): TopFolder {
  return { name: toBase64(fromLatin1(name)), ...counts };
}
