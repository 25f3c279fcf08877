/**
 * A bbolt database file: pages of one size, numbered from 0. Integers are little-endian.
 *
 *     page 0, 1   meta: two copies; the intact one with the higher transaction id is valid
 *     others      a freelist, and trees of branch and leaf pages; a larger page continues over the `overflow` pages behind it
 *
 *     page header                  meta (after the header)            leaf element   branch element
 *      0  id        u64             0  magic      u32  0xed0cdaed      0  flags  u32  0  pos    u32
 *      8  flags     u16             4  version    u32  2               4  pos    u32  4  ksize  u32
 *     10  count     u16             8  page size  u32                  8  ksize  u32  8  page   u64
 *     12  overflow  u32            12  flags      u32                 12  vsize  u32
 *                                  16  root bucket: page u64, sequence u64
 *     flags: 1 branch, 2 leaf,     32  freelist's page u64 (all ones: none)
 *            4 meta, 16 freelist   40  pages in use u64
 *                                  48  transaction id u64
 *                                  56  FNV-1a of the 56 bytes before, u64
 *
 * A page has its header, then `count` elements, then their keys and values; `pos` counts from the
 * element's own start. A leaf element with flag 1 is a bucket: its value is the bucket's root page
 * u64 and sequence u64; root page 0 means that a leaf page (header and all) follows in the value
 * itself. The keys of a page ascend, and the key of a branch element is not above the first key of
 * the page that it leads to.
 */
import { alloc, fnv1a64 } from "@quorate/proto";

/** The page size of written files; readers accept others. */
export const PAGE_BYTES = 4096;
export const HEADER_BYTES = 16;
export const ELEMENT_BYTES = 16;
export const BUCKET_BYTES = 16;
/** From the start of a meta page's content to the end of its checksum. */
export const META_BYTES = 64;
const CHECKED_BYTES = 56;

/** bbolt's bounds. */
export const MAX_KEY_BYTES = 32_768;
export const MAX_VALUE_BYTES = 2_147_483_646;

export const Flag = { branch: 1, leaf: 2, meta: 4, freelist: 16 } as const;
/** The flag of a leaf element that is a bucket. */
export const BUCKET_FLAG = 1;

const MAGIC = 0xed0cdaed;
const VERSION = 2;

/** The content of a meta page. */
export interface Meta {
  readonly pageBytes: number;
  /** The page of the root bucket, which lists all buckets. */
  readonly root: number;
  /** Undefined if there is none. */
  readonly freelist: number | undefined;
  /** Pages in use; the file may be longer. */
  readonly pages: number;
  readonly transaction: number;
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Encodes a meta page. */
export function encodeMeta(pageId: number, meta: Meta): Uint8Array {
  const page = new Uint8Array(meta.pageBytes);
  const view = viewOf(page);
  view.setBigUint64(0, BigInt(pageId), true);
  view.setUint16(8, Flag.meta, true);
  const at = HEADER_BYTES;
  view.setUint32(at, MAGIC, true);
  view.setUint32(at + 4, VERSION, true);
  view.setUint32(at + 8, meta.pageBytes, true);
  view.setBigUint64(at + 16, BigInt(meta.root), true);
  view.setBigUint64(
    at + 32,
    meta.freelist === undefined ? 0xffff_ffff_ffff_ffffn : BigInt(meta.freelist),
    true,
  );
  view.setBigUint64(at + 40, BigInt(meta.pages), true);
  view.setBigUint64(at + 48, BigInt(meta.transaction), true);
  view.setBigUint64(at + 56, fnv1a64(page.subarray(at, at + CHECKED_BYTES)), true);
  return page;
}

/**
 * Decodes the content behind the header of a meta page; returns the problem as a text if it is
 * invalid.
 */
export function decodeMeta(bytes: Uint8Array): Meta | string {
  const view = viewOf(bytes);
  if (view.getUint32(0, true) !== MAGIC) return "it is no bbolt database";
  const version = view.getUint32(4, true);
  if (version !== VERSION)
    return `it is a bbolt database of the unknown version ${version}; the known version is ${VERSION}`;
  if (view.getBigUint64(56, true) !== fnv1a64(bytes.subarray(0, CHECKED_BYTES)))
    return "the checksum of the meta page does not match";
  const pageBytes = view.getUint32(8, true);
  if (pageBytes < 1024 || pageBytes > 65_536 || (pageBytes & (pageBytes - 1)) !== 0)
    return `the page size is ${pageBytes}`;
  const freelist = view.getBigUint64(32, true);
  const numbers = {
    root: view.getBigUint64(16, true),
    pages: view.getBigUint64(40, true),
    transaction: view.getBigUint64(48, true),
  };
  for (const [name, value] of Object.entries(numbers))
    if (value > Number.MAX_SAFE_INTEGER) return `the meta page has ${name} ${value}`;
  const pages = Number(numbers.pages);
  const root = Number(numbers.root);
  if (root < 2 || root >= pages) return `the meta page has the root at page ${root} of ${pages}`;
  return {
    pageBytes,
    root,
    pages,
    transaction: Number(numbers.transaction),
    freelist: freelist === 0xffff_ffff_ffff_ffffn ? undefined : Number(freelist),
  };
}

/** A new zeroed page with its header, over as many pages as `sizeBytes` needs. */
export function newPage(id: number, flags: number, count: number, sizeBytes: number): Uint8Array {
  const page = alloc(pagesFor(sizeBytes) * PAGE_BYTES).fill(0);
  writePageHeader(page, { id, flags, count, overflow: pagesFor(sizeBytes) - 1 });
  return page;
}

/** What the header of a page says. */
export interface PageHeader {
  readonly id: number;
  readonly flags: number;
  readonly count: number;
  /** The pages behind the first one that it takes. */
  readonly overflow: number;
}

export function writePageHeader(
  page: Uint8Array,
  { id, flags, count, overflow }: PageHeader,
): void {
  const view = viewOf(page);
  view.setUint32(0, id >>> 0, true);
  view.setUint32(4, Math.floor(id / 0x1_0000_0000), true);
  view.setUint16(8, flags, true);
  view.setUint16(10, count, true);
  view.setUint32(12, overflow, true);
}

/** The number of pages for content of that size, header included. */
export function pagesFor(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / PAGE_BYTES));
}
