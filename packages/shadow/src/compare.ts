/**
 * Comparing the shadow's history with that of the voters, by etcd's HashKV. Hashes compare only at
 * one revision with one compact revision, and members apply and compact at different times, so a
 * comparison is tried again until all that respond can be compared, a bounded number of times.
 */
import type { KeyValueHash, Member } from "@quorate/store";

/** A member's answer; `hash` is undefined where it gave none. */
export interface Answer {
  readonly memberId: bigint;
  readonly hash: KeyValueHash | undefined;
  readonly error: string;
}

/** Whom a comparison asks. */
export interface HashSource {
  /** The shadow's own hash at a revision, 0 for the newest. @throws EtcdError */
  own(revision: number): Promise<KeyValueHash>;
  voters(): readonly Member[];
  ask(members: readonly Member[], revision: number): Promise<readonly Answer[]>;
  pause(delayMs: number): Promise<void>;
}

/** A voter whose history is another one. */
export interface Different {
  readonly kind: "different";
  readonly revision: number;
  readonly compactRevision: number;
  readonly member: Member;
  readonly ownHash: number;
  readonly otherHash: number;
}

export type Comparison =
  | Different
  | {
      readonly kind: "equal";
      readonly revision: number;
      readonly compactRevision: number;
      /** Voters that were compared, of all. */
      readonly compared: number;
      readonly voters: number;
    }
  | { readonly kind: "none"; readonly why: string };

const ATTEMPTS = 40;
const PAUSE_MS = 500;

/**
 * Compares at the newest revision that the shadow has, at each attempt anew.
 * @returns "none" where no voter could be compared: they compact too fast, or none responds
 */
export async function compare(source: HashSource): Promise<Comparison> {
  let why = "";
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    if (attempt > 1) await source.pause(PAUSE_MS);
    let own: KeyValueHash;
    try {
      own = await source.own(0);
    } catch (error) {
      return { kind: "none", why: (error as Error).message };
    }
    const { revision, compactRevision } = own;
    const voters = source.voters();
    const answers = await source.ask(voters, revision);
    const comparable = answers.filter(({ hash }) => hash?.compactRevision === compactRevision);
    const other = comparable.find(({ hash }) => hash?.hash !== own.hash);
    if (other?.hash !== undefined) {
      const member = voters.find(({ id }) => id === other.memberId);
      if (member === undefined) continue;
      const otherHash = other.hash.hash;
      return { kind: "different", revision, compactRevision, member, ownHash: own.hash, otherHash };
    }
    const silent = answers.filter(({ hash }) => hash === undefined);
    const isWhole = comparable.length + silent.length === answers.length;
    const isLast = attempt === ATTEMPTS;
    const isBehind = silent.some(({ error }) => /future revision/.test(error));
    // Who is down is not waited for; who has not come so far is.
    if (comparable.length > 0 && ((isWhole && !isBehind) || isLast))
      return {
        kind: "equal",
        revision,
        compactRevision,
        compared: comparable.length,
        voters: voters.length,
      };
    why = silent[0]?.error ?? "the voters have other compact revisions";
    if (comparable.length === 0 && isWhole && !isBehind && attempt >= 3) break;
  }
  return { kind: "none", why };
}

/**
 * The first revision at which a voter's history differs, between the compact revision and one where
 * it does; halves the distance with each question.
 * @returns undefined where the voter compacts or falls silent meanwhile
 */
export async function firstDifferent(
  source: HashSource,
  { member, revision, compactRevision }: Different,
): Promise<number | undefined> {
  let low = Math.max(1, compactRevision);
  let high = revision;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const own = await source.own(middle).catch(() => undefined);
    const [answer] = await source.ask([member], middle);
    const theirs = answer?.hash;
    if (own?.compactRevision !== compactRevision || theirs?.compactRevision !== compactRevision)
      return undefined;
    if (own.hash === theirs.hash) low = middle + 1;
    else high = middle;
  }
  return low;
}
