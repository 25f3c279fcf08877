/**
 * The keys and folders directly below a prefix, a part at a time. It reads a page of keys, and goes
 * on behind the last folder of it: a folder costs one page, however many keys are in it.
 */
import {
  fromLatin1,
  KeyValue,
  KVService,
  type RangeResponse,
  toBase64,
  toLatin1,
} from "@quorate/proto";
import type { ExchangeCaller, ServiceCalls } from "@quorate/services";
import { endOfPrefix, folderOf } from "./names.ts";

/** Children of one part. */
export const MAX_CHILDREN = 100;
/** Keys of one page. */
const PAGE_KEYS = 100;

/** A key, or a folder. */
interface Child {
  /** In base64; of a folder its prefix. */
  readonly name: string;
  readonly isFolder: boolean;
}

export interface Children {
  readonly children: readonly Child[];
  /** Where the next part begins, in base64; undefined behind the last one. */
  readonly next?: string;
  readonly revision: number;
}

export interface ChildrenRequest {
  /** Both latin1; `from` is the prefix for the first part. */
  readonly prefix: string;
  readonly from: string;
  /** 0 for the newest. */
  readonly revision: number;
}

/**
 * Reads one part, of what is applied on this member.
 * @param pages as pageTable()
 * @returns a promise. Rejects as Range does, and for a caller who may not read the prefix
 */
export async function childrenOf(
  pages: ServiceCalls,
  caller: ExchangeCaller,
  { prefix, from, revision }: ChildrenRequest,
): Promise<Children> {
  const end = prefix === "" ? "\0" : endOfPrefix(prefix);
  const children: Child[] = [];
  let start = from === "" ? "\0" : from;
  let at = revision;
  let folder: string | undefined;
  for (;;) {
    const page: RangeResponse = await pages.unary(
      KVService.methods.Range,
      {
        key: fromLatin1(start),
        rangeEnd: fromLatin1(end),
        revision: at,
        limit: PAGE_KEYS,
        keysOnly: true,
        serializable: true,
      },
      caller,
    );
    at ||= page.header?.revision ?? 0;
    const names = page.kvs.map((record) => toLatin1(KeyValue.decode(record).key));
    for (const name of names) {
      if (folder !== undefined && name.startsWith(folder)) continue;
      folder = folderOf(prefix, name);
      const shown = toBase64(fromLatin1(folder ?? name));
      if (children.length === MAX_CHILDREN) return { children, next: shown, revision: at };
      children.push({ name: shown, isFolder: folder !== undefined });
    }
    const last = names.at(-1);
    if (!page.more || last === undefined) return { children, revision: at };
    start = folder === undefined ? `${last}\0` : endOfPrefix(folder);
    if (start === "\0" || (end !== "\0" && start >= end)) return { children, revision: at };
  }
}
