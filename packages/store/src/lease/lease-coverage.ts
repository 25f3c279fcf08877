/**
 * Whether a set of permissions covers every key of a lease, remembered while keys come and go: a
 * put with a lease of a million keys must not look at all of them again.
 *
 *     keys       k1 k2 k3 | k4 k5         | what was not looked at yet; new keys go to its end
 *     uncovered  {}                       one that is found here is enough for a refusal
 *
 * Each key is looked at once, and again when it is attached again.
 */
import type { Steps } from "../backend/steps.ts";

/** Sets of permissions of which the coverage of one lease is remembered. */
export const MAX_LEASE_COVERAGES = 8;
/** Of a lease with so few keys nothing is remembered: they are looked at each time. */
export const MAX_FORGOTTEN_KEYS = 64;

/** The coverage of one lease by one set of permissions. */
export class LeaseCoverage {
  readonly #covers: (key: string) => boolean;
  /** Follows the set as it changes; undefined when every key was looked at. */
  #unseen: Iterator<string> | undefined;
  /** Keys that were looked at and are not covered. */
  readonly #uncovered = new Set<string>();

  readonly #stepKeys: number;

  /**
   * @param keys the lease's keys, in the order in which they were attached, now and later
   * @param stepKeys maximum keys in one step
   */
  constructor(keys: ReadonlySet<string>, covers: (key: string) => boolean, stepKeys: number) {
    this.#stepKeys = stepKeys;
    this.#covers = covers;
    this.#unseen = keys[Symbol.iterator]();
  }

  /** A key was attached. */
  attached(key: string): void {
    if (this.#unseen === undefined && !this.#covers(key)) this.#uncovered.add(key);
  }

  /** A key was detached. */
  detached(key: string): void {
    this.#uncovered.delete(key);
  }

  /** True if every key is covered. */
  *isWhole(): Steps<boolean> {
    for (let count = 1; this.#uncovered.size === 0 && this.#unseen !== undefined; count++) {
      const next = this.#unseen.next();
      if (next.done === true) this.#unseen = undefined;
      else if (!this.#covers(next.value)) this.#uncovered.add(next.value);
      if (count % this.#stepKeys === 0) yield;
    }
    return this.#uncovered.size === 0;
  }
}

/** The coverages of one lease, by the permissions and what is wanted of them. */
export class LeaseCoverages {
  readonly #keys: ReadonlySet<string>;
  /** The one that was asked last is the last. */
  readonly #kept: { readonly of: object; readonly kind: string; readonly one: LeaseCoverage }[] =
    [];

  readonly #stepKeys: number;

  constructor(keys: ReadonlySet<string>, stepKeys: number) {
    this.#keys = keys;
    this.#stepKeys = stepKeys;
  }

  /**
   * The coverage by one set of permissions.
   * @param of the permissions, which do not change
   * @param kind what they are looked at for
   * @param covers whether they cover a key; always the same for the same two
   */
  by(of: object, kind: string, covers: (key: string) => boolean): LeaseCoverage {
    const kept = this.#kept;
    const at = kept.findIndex((one) => one.of === of && one.kind === kind);
    const found = at === -1 ? undefined : kept.splice(at, 1)[0];
    if (found === undefined && kept.length === MAX_LEASE_COVERAGES) kept.shift();
    const entry = found ?? { of, kind, one: new LeaseCoverage(this.#keys, covers, this.#stepKeys) };
    kept.push(entry);
    return entry.one;
  }

  attached(key: string): void {
    for (const { one } of this.#kept) one.attached(key);
  }

  detached(key: string): void {
    for (const { one } of this.#kept) one.detached(key);
  }
}
