/** What an entry that is applied in several turns has changed of the keys of leases so far. */
export class UnfinishedChanges {
  /** Keys that it has changed. */
  readonly #changed = new Set<string>();
  /** Those of them that were attached before it, by lease. */
  readonly #attachedBefore = new Map<bigint, Set<string>>();

  /** Notes the lease of a key before its first change; 0n for none. */
  note(key: string, lease: bigint): void {
    if (this.#changed.has(key)) return;
    this.#changed.add(key);
    if (lease === 0n) return;
    const keys = this.#attachedBefore.get(lease);
    if (keys === undefined) this.#attachedBefore.set(lease, new Set([key]));
    else keys.add(key);
  }

  has(key: string): boolean {
    return this.#changed.has(key);
  }

  /** Keys of a lease before the entry that it has changed; more may follow. */
  attachedBefore(lease: bigint): ReadonlySet<string> {
    return this.#attachedBefore.get(lease) ?? NO_KEYS;
  }
}

const NO_KEYS: ReadonlySet<string> = new Set();
