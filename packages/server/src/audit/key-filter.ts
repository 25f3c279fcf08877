/** Which calls are about keys that the audit log is for. */
import { trimEndOf } from "@quorate/host";
import { toLatin1 } from "@quorate/proto";
import type { KeyAccess } from "./subjects.ts";

export class KeyFilter {
  readonly #ranges: readonly (readonly [start: string, end: string | undefined])[];

  /** @param prefixes of keys; none for all keys */
  constructor(prefixes: readonly Uint8Array[]) {
    this.#ranges = prefixes.map((prefix) => {
      const start = toLatin1(prefix);
      return [start, afterPrefix(start)] as const;
    });
  }

  /** True where every call is logged. */
  get isOpen(): boolean {
    return this.#ranges.length === 0;
  }

  /** Whether a call with these keys is logged; one without keys always is. */
  admits(accesses: readonly KeyAccess[]): boolean {
    return this.isOpen || accesses.length === 0 || accesses.some(this.#isNear);
  }

  readonly #isNear = ({ key, end }: KeyAccess): boolean => {
    const from = toLatin1(key);
    const to = toLatin1(end);
    return this.#ranges.some(([start, stop]) => {
      if (stop !== undefined && from >= stop) return false;
      if (to === "") return from >= start;
      return to === "\0" || to > start;
    });
  };
}

/** The first key after those with a prefix; undefined where there is none. */
function afterPrefix(prefix: string): string | undefined {
  const kept = trimEndOf(prefix, "\xff");
  if (kept === "") return undefined;
  const last = kept.charCodeAt(kept.length - 1);
  return kept.slice(0, -1) + String.fromCharCode(last + 1);
}
