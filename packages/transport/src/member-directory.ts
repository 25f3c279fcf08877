/**
 * Who may send this member Raft's messages: only members of the cluster. Another process
 * that opens a stream as a member that does not exist could pass for a leader of a later term.
 *
 * This member's own membership may be old: a member that was down does not know those that were
 * added meanwhile, and one of them may lead. So a sender that is unknown, or whose certificate does
 * not fit its known URLs, is refused, and the members that are known are asked for the membership.
 * The sender tries again within a second; by then the answers are there.
 */

/** A member of the cluster, as other members report it. */
export interface ReportedMember {
  readonly id: bigint;
  readonly peerUrls: readonly string[];
}

/**
 * Asks other members for the membership. Never rejects.
 * @param peerUrls of the members that the transport knows
 * @param reported called with each answer, as it comes
 */
export type AskMembers = (
  peerUrls: readonly string[],
  reported: (members: readonly ReportedMember[]) => void,
) => Promise<void>;

/**
 * What this member thinks of a sender. "asking": it is not known, and the others are being asked.
 * "unknown": no other member knows it. "certificate": the member is known, and the sender's
 * certificate is not that member's.
 */
export type Standing = "member" | "asking" | "unknown" | "certificate";

/** Whether a sender's certificate is that of a member at these peer URLs. */
export type FitsUrls = (peerUrls: readonly string[]) => boolean;

/** The others are asked at most once in so long. */
export const ASK_INTERVAL_MS = 500;

export interface DirectoryParts {
  monotonicMs(): number;
  /** The peer URLs of a member of the applied membership, undefined for another. */
  knownUrls(id: bigint): readonly string[] | undefined;
  /** Those of this member. */
  readonly localUrls: readonly string[];
  /** Those of all other members of it. */
  peerUrls(): readonly string[];
  /** Undefined where no member can be asked: unknown senders are never accepted then. */
  readonly askMembers: AskMembers | undefined;
}

export class MemberDirectory {
  readonly #parts: DirectoryParts;
  /** What the others said. */
  #reported = new Map<bigint, readonly string[]>();
  #isAsking = false;
  #askedAtMs: number | undefined;

  constructor(parts: DirectoryParts) {
    this.#parts = parts;
  }

  /** The peer URLs of a member that other members have reported, undefined for another. */
  reportedUrls(id: bigint): readonly string[] | undefined {
    return this.#reported.get(id);
  }

  /** Whether a sender is the member that it says it is. May start to ask the others. */
  standingOf(id: bigint, fits: FitsUrls): Standing {
    const known = this.#parts.knownUrls(id);
    if (known !== undefined && fits(known)) return "member";
    const reported = this.#reported.get(id);
    if (reported !== undefined && fits(reported)) return "member";
    if (this.#ask()) return "asking";
    return known === undefined && reported === undefined ? "unknown" : "certificate";
  }

  /** Whether the sender's certificate is that of some member. May start to ask the others. */
  isSomeMembers(fits: FitsUrls): boolean {
    const { localUrls, peerUrls } = this.#parts;
    if (fits([...localUrls, ...peerUrls(), ...[...this.#reported.values()].flat()])) return true;
    this.#ask();
    return false;
  }

  /**
   * The applied membership has changed in what it says of a member: what others said of it is out
   * of date.
   */
  applied(id: bigint): void {
    this.#reported.delete(id);
  }

  /** Asks the others, unless that was done a moment ago; true while their answers are awaited. */
  #ask(): boolean {
    const { askMembers, monotonicMs, peerUrls } = this.#parts;
    if (askMembers === undefined) return false;
    if (this.#isAsking) return true;
    if (this.#askedAtMs !== undefined && monotonicMs() - this.#askedAtMs < ASK_INTERVAL_MS)
      return false;
    this.#isAsking = true;
    const before = this.#reported;
    const answers = new Map<bigint, readonly string[]>();
    askMembers(peerUrls(), (members) => {
      for (const { id, peerUrls } of members) answers.set(id, peerUrls);
      this.#reported = new Map([...before, ...answers]);
    }).then(() => {
      this.#isAsking = false;
      this.#askedAtMs = monotonicMs();
      // What no member reports any more is forgotten, unless no member has responded.
      if (answers.size > 0) this.#reported = answers;
    });
    return true;
  }
}
