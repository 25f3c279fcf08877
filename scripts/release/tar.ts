/**
 * tar (POSIX ustar) and ar, written here so that the same content results in the same bytes:
 * entries in the order given, one time stamp, everything owned by root.
 *
 *   tar: for each entry a header of 512 bytes (name 100, mode 8, uid 8, gid 8, size 12, time 12,
 *   checksum 8, type 1, link 100,
 *        "ustar" 00, owner 32, group 32, device 16, prefix 155), its content filled up to 512; two
 *        empty blocks at the end
 *   ar:  "!<arch>\n", then for each file a header of 60 characters (name 16, time 12, uid 6, gid 6,
 *        mode 8, size 10, "`\n") and its
 *        content filled up to an even length
 */

/** A file (`content`), a symbolic link (`link`) or a directory (neither). */
export interface Entry {
  /** Without a slash at either end. */
  readonly path: string;
  readonly mode: number;
  readonly content?: Uint8Array;
  readonly link?: string;
}

const BLOCK_BYTES = 512;

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

/** A path as the header's name and prefix. Throws if it does not fit. */
function splitPath(path: string): { name: string; prefix: string } {
  if (Buffer.byteLength(path) <= 100) return { name: path, prefix: "" };
  for (let slash = path.indexOf("/"); slash !== -1; slash = path.indexOf("/", slash + 1)) {
    const [prefix, name] = [path.slice(0, slash), path.slice(slash + 1)];
    if (Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100) return { name, prefix };
  }
  throw new Error(`${path} is too long for a tar header`);
}

function header(entry: Entry, mtimeSeconds: number): Buffer {
  const kind = entry.content !== undefined ? "0" : entry.link !== undefined ? "2" : "5";
  const { name, prefix } = splitPath(kind === "5" ? `${entry.path}/` : entry.path);
  const block = Buffer.alloc(BLOCK_BYTES);
  const put = (text: string, at: number): void => void block.write(text, at, "utf8");
  put(name, 0);
  put(octal(entry.mode, 8), 100);
  put(octal(0, 8), 108);
  put(octal(0, 8), 116);
  put(octal(entry.content?.length ?? 0, 12), 124);
  put(octal(mtimeSeconds, 12), 136);
  put("        ", 148);
  put(kind, 156);
  put(entry.link ?? "", 157);
  put("ustar\x0000root", 257);
  put("root", 297);
  put(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

function filling(length: number, unit: number): Buffer {
  return Buffer.alloc((unit - (length % unit)) % unit);
}

/** The entries as a tar archive. Throws for a path over 255 bytes or a link over 100. */
export function tar(entries: readonly Entry[], mtimeSeconds: number): Buffer {
  const parts: Uint8Array[] = [];
  for (const entry of entries) {
    if (Buffer.byteLength(entry.link ?? "") > 100)
      throw new Error(`the link ${entry.link} is too long for a tar header`);
    parts.push(header(entry, mtimeSeconds));
    if (entry.content !== undefined)
      parts.push(entry.content, filling(entry.content.length, BLOCK_BYTES));
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK_BYTES)]);
}

/**
 * Adds the directories that the entries lie in, each before what is in it, all sorted by path.
 * Every directory has mode 0755.
 */
export function withDirectories(entries: readonly Entry[]): Entry[] {
  const directories = new Set<string>();
  for (const { path } of entries) {
    for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1))
      directories.add(path.slice(0, slash));
  }
  for (const { path } of entries) directories.delete(path);
  const all = [...entries, ...[...directories].map((path): Entry => ({ path, mode: 0o755 }))];
  return all.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Files as an ar archive. Names have at most 16 characters. */
export function ar(
  files: readonly { readonly name: string; readonly content: Uint8Array }[],
  mtimeSeconds: number,
): Buffer {
  const parts: Uint8Array[] = [Buffer.from("!<arch>\n")];
  for (const { name, content } of files) {
    const head = [
      name.padEnd(16),
      String(mtimeSeconds).padEnd(12),
      "0".padEnd(6),
      "0".padEnd(6),
      "100644".padEnd(8),
    ];
    parts.push(Buffer.from(`${head.join("")}${String(content.length).padEnd(10)}\`\n`), content);
    if (content.length % 2 === 1) parts.push(Buffer.from("\n"));
  }
  return Buffer.concat(parts);
}
