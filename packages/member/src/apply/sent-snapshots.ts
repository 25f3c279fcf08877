/**
 * Snapshots on their way to followers, one for each at a time. The log behind one stays while it is
 * sent, and for a while after: its receiver has to ask for what follows.
 */
import type { Clock } from "@quorate/host";
import type { Raft } from "@quorate/raft";
import type { StoreSnapshot } from "@quorate/store";
import type { Lifetime } from "../loop/lifetime.ts";
import type { LoopTurns } from "../loop/turns.ts";

/** As in etcd. */
const KEEP_AFTER_SENT_MS = 30_000;

/** A snapshot for a follower. */
export interface SentSnapshot {
  /** The view that is streamed; undefined before it is open and after it was closed. */
  snapshot: StoreSnapshot | undefined;
  /** The log from here on stays. */
  index: number;
  /** The transport has reported how it ended: the next may be sent. */
  isOver: boolean;
}

export interface SentSnapshotsParts {
  readonly clock: Clock;
  readonly raft: Raft;
  readonly turns: LoopTurns;
  readonly lifetime: Lifetime;
}

export class SentSnapshots {
  readonly #parts: SentSnapshotsParts;
  readonly #byMember = new Map<bigint, SentSnapshot>();

  constructor(parts: SentSnapshotsParts) {
    this.#parts = parts;
  }

  /**
   * Begins one for a member. Undefined while another is on its way: of two, the end of the one
   * could not be distinguished from that of the other.
   * @param index from which on the log is to stay until the view is open
   */
  begin(id: bigint, index: number): SentSnapshot | undefined {
    if (this.#byMember.get(id)?.isOver === false) return undefined;
    const sent: SentSnapshot = { snapshot: undefined, index, isOver: false };
    this.#byMember.set(id, sent);
    return sent;
  }

  /** False once the store was closed, or exchanged, since it began. */
  isCurrent(id: bigint, sent: SentSnapshot): boolean {
    return this.#byMember.get(id) === sent;
  }

  /** The least of `index` and the indexes from which on the log stays. */
  least(index: number): number {
    return Math.min(index, ...[...this.#byMember.values()].map((sent) => sent.index));
  }

  /** A snapshot was taken over by the peer, or was not. */
  ended(id: bigint, taken: boolean): void {
    const { clock, raft, turns } = this.#parts;
    const sent = this.#byMember.get(id);
    if (sent !== undefined) {
      this.#close(sent);
      sent.isOver = true;
      clock.after(taken ? KEEP_AFTER_SENT_MS : 0, () => {
        if (this.#byMember.get(id) === sent) this.#byMember.delete(id);
      });
    }
    raft.reportSnapshot(id, taken);
    turns.wake();
  }

  #close(sent: SentSnapshot): void {
    sent.snapshot?.close().catch(this.#parts.lifetime.end);
    sent.snapshot = undefined;
  }

  /** Closes the views that are still being sent, when the member lets go of the store. */
  async close(): Promise<void> {
    for (const sent of this.#byMember.values()) await sent.snapshot?.close();
    this.#byMember.clear();
  }
}
