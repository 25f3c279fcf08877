/**
 * Keys as a tree: below a prefix, what follows up to the next slash. Slashes that come first belong
 * to the name, so that "/registry/pods" begins with "/registry/".
 */

/**
 * The folder below a prefix that a key is in, as a prefix; undefined for a key that is in none.
 * Keys are latin1, one character a byte.
 */
export function folderOf(prefix: string, key: string): string | undefined {
  let start = prefix.length;
  while (start < key.length && key[start] === "/") start++;
  const slash = key.indexOf("/", start);
  return slash < 0 ? undefined : key.slice(0, slash + 1);
}

/** The first key after those with a prefix; "\0" where there is none, as in a range's end. */
export function endOfPrefix(prefix: string): string {
  for (let i = prefix.length - 1; i >= 0; i--) {
    const code = prefix.charCodeAt(i);
    if (code < 0xff) return prefix.slice(0, i) + String.fromCharCode(code + 1);
  }
  return "\0";
}
