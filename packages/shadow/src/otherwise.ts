/**
 * What a cluster of Quorate would have refused, or done otherwise, of what this cluster applies.
 * Each request of the log is judged by the rules that a member of Quorate applies at its door:
 *
 *     requests    the checks of their kind, and --max-txn-ops, --max-request-bytes
 *     users       compactions, leases and alarms of users that may not have them done
 *     space       NOSPACE where the live bytes are far below the quota: etcd counts the file
 */
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmType,
  InternalRaftRequest,
  type raftpb,
  toHex,
  toLatin1,
} from "@quorate/proto";
import {
  type AppliedEntry,
  checkMessage,
  decodeRequest,
  identifiedRequest,
  type RequestLimits,
  type Store,
  verdictBeforeEtcd,
} from "@quorate/store";

/** Different texts that are kept; what comes then counts under the last. */
const MAX_TEXTS = 50;
const MAX_TEXT_CHARS = 300;

/** One thing that Quorate would have done otherwise. */
export interface Otherwise {
  readonly what: string;
  readonly count: number;
  /** The index of the last entry. */
  readonly lastIndex: number;
}

export interface OtherwiseLimits extends RequestLimits {
  /** --max-request-bytes. */
  readonly maxRequestBytes: number;
  /** --quota-backend-bytes, of which Quorate counts live records and keys. */
  readonly quotaBytes: number;
}

export class OtherwiseCounter {
  readonly #limits: OtherwiseLimits;
  readonly #found = new Map<string, { count: number; lastIndex: number }>();
  /** Requests that were applied, by their kind. */
  readonly kinds = new Map<string, number>();

  constructor(limits: OtherwiseLimits) {
    this.#limits = limits;
  }

  get all(): readonly Otherwise[] {
    return [...this.#found].map(([what, { count, lastIndex }]) => ({ what, count, lastIndex }));
  }

  /** A request of the log was applied. Never throws. */
  applied(entry: raftpb.Entry, { kind }: AppliedEntry, store: Store): void {
    if (kind === undefined) return;
    this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + 1);
    const why = this.#refusal(entry, kind, store);
    if (why !== undefined) this.note(`${kind}: ${why}`, entry.index);
  }

  /** Counts what was done otherwise. @param index of the entry, or of the last applied one */
  note(what: string, index: number): void {
    const text = what.slice(0, MAX_TEXT_CHARS);
    const isKnown = this.#found.has(text) || this.#found.size < MAX_TEXTS;
    const key = isKnown ? text : "others";
    const count = (this.#found.get(key)?.count ?? 0) + 1;
    this.#found.set(key, { count, lastIndex: index });
  }

  #refusal(
    { data }: raftpb.Entry,
    kind: NonNullable<AppliedEntry["kind"]>,
    { auth, lessor, quotaBytes: used }: Store,
  ): string | undefined {
    if (data.length > this.#limits.maxRequestBytes)
      return `more than --max-request-bytes of ${this.#limits.maxRequestBytes}`;
    try {
      const { request, identity } = identifiedRequest(InternalRaftRequest.decode(data));
      const bytes = request[kind];
      // An entry of etcd's v2 store carries attributes of members alone.
      if (bytes === undefined) return undefined;
      const message = decodeRequest(kind, bytes, this.#limits);
      checkMessage(kind, message, this.#limits);
      if (kind === "alarm" && isNoSpace(bytes) && used < this.#limits.quotaBytes)
        return `NOSPACE is raised, and ${used} live bytes are below the quota of ${this.#limits.quotaBytes}`;
      const refused = auth.isEnabled
        ? verdictBeforeEtcd(auth, identity, kind, message, lessor)
        : undefined;
      return refused === undefined ? undefined : `refused before it is proposed (${refused})`;
    } catch (error) {
      return (error as Error).message;
    }
  }
}

function isNoSpace(bytes: Uint8Array): boolean {
  const { action, alarm } = AlarmRequest.decode(bytes);
  return action === AlarmRequest_AlarmAction.ACTIVATE && alarm === AlarmType.NOSPACE;
}

/** A key as it is printed: as text where it is printable, else in hexadecimal. */
export function keyText(key: Uint8Array, isHex: boolean): string {
  const text = toLatin1(key);
  return !isHex && /^[\x20-\x7e]*$/.test(text) ? text : `0x${toHex(key)}`;
}
