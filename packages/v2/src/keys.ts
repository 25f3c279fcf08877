/**
 * Where a node of the v2 tree is in the keyspace of v3.
 *
 *     /v2/keys//foo            the node /foo (a file or a directory)
 *     /v2/keys/foo//           "/foo is a directory", and the last name that POST made in it
 *     /v2/keys/foo//bar        the node /foo/bar
 *     /v2/keys/foo///          how the last child of /foo that has no simple cause was deleted
 *     /v2/keys/foo/bar//x      the node /foo/bar/x
 *
 * A name is not empty and has no slash, so "//" is the place where the path of a directory ends.
 * The children of a directory are one range of keys ("/v2/keys/foo//"), and all that is below it
 * is one range too ("/v2/keys/foo/"): neither is found by a scan. Paths and keys are latin1
 * strings, one char a byte, so string order is byte order.
 */

/** Under it are all keys of the v2 tree. */
export const KEY_PREFIX = "/v2/keys";

/** A path of the v2 tree: its names from the root on; none for the root. */
export type Path = readonly string[];

/** A range of keys in v3's form: from `key`, up to `rangeEnd` without it. */
export interface Range {
  readonly key: string;
  readonly rangeEnd: string;
}

/**
 * The names of a path, cleaned as Go's path.Join does: empty names and "." vanish, ".." removes
 * the name before it.
 */
export function cleanPath(path: string): string[] {
  const names: string[] = [];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name === "..") names.pop();
    else names.push(name);
  }
  return names;
}

/** A path as clients write it; "" for the root, as etcd's responses have it. */
export function pathText(path: Path): string {
  return path.length === 0 ? "" : `/${path.join("/")}`;
}

/** Beginning of the keys of all nodes below a directory. */
function below(path: Path): string {
  return `${KEY_PREFIX}${pathText(path)}/`;
}

/** The key of a node; the root has none. */
export function nodeKey(path: Path): string {
  return `${below(path.slice(0, -1))}/${path[path.length - 1]}`;
}

/** The key that says that a node is a directory. It has the last name that POST made in it. */
export function directoryKey(path: Path): string {
  return `${below(path)}/`;
}

/** The key of the last deletion in a directory that has no simple cause (see events.ts). */
export function deletionKey(directory: Path): string {
  return `${below(directory)}//`;
}

/** All keys below a directory, its own two included. */
export function subtree(path: Path): Range {
  const key = below(path);
  return { key, rangeEnd: after(key) };
}

/** The keys of the nodes in a directory. `deletionKey` is among them, `directoryKey` is not. */
export function children(path: Path): Range {
  const key = directoryKey(path);
  return { key: `${key}\0`, rangeEnd: after(key) };
}

/** The ranges that are empty exactly when a directory has no node in it. */
export function childrenWithoutDeletion(path: Path): readonly Range[] {
  const { key, rangeEnd } = children(path);
  const deletion = deletionKey(path);
  return [
    { key, rangeEnd: deletion },
    { key: `${deletion}\0`, rangeEnd },
  ];
}

/** A range without the keys, some of which may be outside of it. */
export function without(range: Range, keys: readonly string[]): Range[] {
  const ranges: Range[] = [];
  let from = range.key;
  for (const key of [...keys].sort()) {
    if (key < from || key >= range.rangeEnd) continue;
    if (from < key) ranges.push({ key: from, rangeEnd: key });
    from = `${key}\0`;
  }
  if (from < range.rangeEnd) ranges.push({ key: from, rangeEnd: range.rangeEnd });
  return ranges;
}

/** The first key behind all that begin with `prefix`, which ends in a slash. */
function after(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}

/** The path of a node's key; undefined for the keys that are not a node's. */
export function pathOfKey(key: string): string[] | undefined {
  if (!key.startsWith(`${KEY_PREFIX}/`)) return undefined;
  const names = key.slice(KEY_PREFIX.length + 1).split("/");
  const name = names.pop();
  // "a//b": the names, an empty one, and the node's own.
  if (!name || names.pop() !== "" || names.includes("")) return undefined;
  return [...names, name];
}

/** Whether a key is under KEY_PREFIX. */
export function isTreeKey(key: string): boolean {
  return key.startsWith(`${KEY_PREFIX}/`);
}
