/**
 * Scans every leaf page of a database file, including freed pages that are not yet overwritten, to
 * find records that a walk over the trees does not reach. Everything is validated; an unreadable
 * page is reported and skipped.
 */
import type { Disk, DiskFile } from "@quorate/host";
import { ELEMENT_BYTES, Flag, HEADER_BYTES, viewOf } from "./format.ts";
import { readMeta } from "./reader.ts";

/** A record with its index in the page. */
export interface ScannedRecord {
  readonly index: number;
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** A leaf page with its records, or the problem of an unreadable page. */
export type ScannedPage =
  | { readonly page: number; readonly count: number; readonly records: readonly ScannedRecord[] }
  | { readonly page: number; readonly problem: string };

/**
 * The leaf pages in the order of the file. Throws BoltDamageError if both meta pages are invalid;
 * DiskError.
 */
export function* scanLeaves(disk: Disk, path: string): Generator<ScannedPage> {
  const file = disk.open(path, "read");
  try {
    const { pageBytes, pages } = readMeta(file);
    for (let page = 2; page < pages; ) {
      const header = bytesAt(file, page * pageBytes, HEADER_BYTES);
      const view = viewOf(header);
      const id = view.getBigUint64(0, true);
      if (id !== BigInt(page)) {
        yield { page, problem: `its header has page number ${id}` };
        page++;
        continue;
      }
      const overflow = view.getUint32(12, true);
      if (view.getUint16(8, true) !== Flag.leaf) {
        page++;
        continue;
      }
      if (page + overflow >= pages)
        yield {
          page,
          problem: `it overflows into ${overflow} pages, and the last page is ${pages - 1}`,
        };
      else yield leafAt(bytesAt(file, page * pageBytes, pageBytes * (overflow + 1)), page);
      page += page + overflow >= pages ? 1 : overflow + 1;
    }
  } finally {
    file.close();
  }
}

/** Bytes of the file, with zeros behind its end. */
function bytesAt(file: DiskFile, position: number, sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes);
  for (let done = 0; done < sizeBytes; ) {
    const read = file.read(bytes.subarray(done), position + done);
    if (read === 0) break;
    done += read;
  }
  return bytes;
}

function leafAt(bytes: Uint8Array, page: number): ScannedPage {
  const view = viewOf(bytes);
  const count = view.getUint16(10, true);
  const records: ScannedRecord[] = [];
  for (let index = 0; index < count; index++) {
    const element = HEADER_BYTES + index * ELEMENT_BYTES;
    if (element + ELEMENT_BYTES > bytes.length)
      return { page, problem: `${count} elements do not fit` };
    const start = element + view.getUint32(element + 4, true);
    const middle = start + view.getUint32(element + 8, true);
    const end = middle + view.getUint32(element + 12, true);
    if (end > bytes.length)
      return {
        page,
        problem: `element ${index} ends at byte ${end}, behind the page's ${bytes.length}`,
      };
    records.push({ index, key: bytes.subarray(start, middle), value: bytes.subarray(middle, end) });
  }
  return { page, count, records };
}
