/** The leader as this member knows it. The loop writes it, at the Ready that brings the news. */
import type { StoreRef } from "../reads/store-ref.ts";

export class LeaderView {
  readonly memberId: bigint;
  readonly #store: StoreRef;
  /** 0n where none is known. */
  leader = 0n;
  /** When the member last heard of a new leader, in monotonic milliseconds; 0 for never. */
  electedMs = 0;

  constructor(memberId: bigint, store: StoreRef) {
    this.memberId = memberId;
    this.#store = store;
  }

  get isLeader(): boolean {
    return this.leader === this.memberId;
  }

  /** The leader's peer URLs; undefined where none is known, or this member leads. */
  peerUrls(): readonly string[] | undefined {
    return this.isLeader ? undefined : this.#store.current.membership.member(this.leader)?.peerUrls;
  }
}
