/** The leader as this member knows it. The loop writes it, at the Ready that brings the news. */
export class LeaderView {
  readonly memberId: bigint;
  /** 0n where none is known. */
  leader = 0n;
  /** When the member last heard of a new leader, in monotonic milliseconds; 0 for never. */
  electedMs = 0;

  constructor(memberId: bigint) {
    this.memberId = memberId;
  }

  get isLeader(): boolean {
    return this.leader === this.memberId;
  }
}
