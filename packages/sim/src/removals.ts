/**
 * Removals of members that were requested and may still take place. Two operators that request one
 * each at the same moment can remove the quorum, although each request alone leaves one.
 */
import type { Member } from "@quorate/proto";

export class Removals {
  readonly #nowMs: () => number;
  readonly #durationMs: number;
  readonly #isSound: (member: Member) => boolean;
  /** When a requested removal cannot take place any more, by member. */
  readonly #endsMs = new Map<bigint, number>();

  /**
   * @param durationMs how long a request may take effect
   * @param isSound whether a member can do its part
   */
  constructor(nowMs: () => number, durationMs: number, isSound: (member: Member) => boolean) {
    this.#nowMs = nowMs;
    this.#durationMs = durationMs;
    this.#isSound = isSound;
  }

  /** Whether the voters without `member`, and without pending removals, have a sound quorum. */
  isSafe(member: Member, members: readonly Member[]): boolean {
    const others = members.filter(
      ({ ID, isLearner }) =>
        ID !== member.ID && !isLearner && (this.#endsMs.get(ID) ?? 0) <= this.#nowMs(),
    );
    return 2 * others.filter(this.#isSound).length > others.length;
  }

  /** As `isSafe`; if true, the removal is pending from now on. */
  begin(member: Member, members: readonly Member[]): boolean {
    if (!this.isSafe(member, members)) return false;
    this.#endsMs.set(member.ID, this.#nowMs() + this.#durationMs);
    return true;
  }
}
