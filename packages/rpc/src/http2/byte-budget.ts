/**
 * Bytes that connections hold of one kind, with a bound for each connection and one for all of
 * them.
 *
 * When the bound of all is reached, the largest holder makes room: of the client (identity) that
 * holds the most, the connection that holds the most is cut off. Only a request by the largest
 * holder itself is refused. So whoever holds less than an equal share is always served, whatever
 * others leave lying.
 */

/** At most so many connections are cut off for one request. */
const MAX_CUTS_AT_ONCE = 32;

/** The bytes of one connection. */
export class ByteBudget {
  readonly #limitBytes: number;
  readonly #whole: SharedBudget;
  /** @internal Of the same client. */
  readonly group: BudgetGroup;
  /** @internal Ends the connection. */
  readonly cut: () => void;
  /** @internal Was asked to end already: what it still holds becomes free without its doing. */
  isCut = false;
  #usedBytes = 0;

  constructor(limitBytes: number, whole: SharedBudget, group: BudgetGroup, cut: () => void) {
    this.#limitBytes = limitBytes;
    this.#whole = whole;
    this.group = group;
    this.cut = cut;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** More than half is used, here or of the whole: time to slow down. */
  get isHigh(): boolean {
    return this.#usedBytes * 2 > this.#limitBytes || this.#whole.isHigh;
  }

  /**
   * Takes the bytes and gives true, or leaves everything as it is and gives false if they would go
   * beyond a bound.
   */
  take(sizeBytes: number): boolean {
    if (this.#usedBytes + sizeBytes > this.#limitBytes) return false;
    if (!this.#whole.take(sizeBytes, this)) return false;
    this.#usedBytes += sizeBytes;
    this.group.usedBytes += sizeBytes;
    return true;
  }

  give(sizeBytes: number): void {
    this.#usedBytes -= sizeBytes;
    this.group.usedBytes -= sizeBytes;
    this.#whole.give(sizeBytes);
  }

  /** The connection is gone. What it holds still counts until it is given back. */
  leave(): void {
    this.isCut = true;
    this.#whole.leave(this);
  }
}

/** The connections of one client, and what they hold together. */
export interface BudgetGroup {
  readonly identity: string;
  usedBytes: number;
  readonly members: Set<ByteBudget>;
}

/** The bytes of all connections. */
export class SharedBudget {
  readonly #limitBytes: number;
  readonly #groups = new Map<string, BudgetGroup>();
  #usedBytes = 0;
  /** Connections that were cut off to make room. */
  cuts = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get isHigh(): boolean {
    return this.#usedBytes * 2 > this.#limitBytes;
  }

  /**
   * The budget of a new connection. @param identity its client. @param cut ends the connection, and
   * gives back what it holds
   */
  join(limitBytes: number, identity: string, cut: () => void): ByteBudget {
    let group = this.#groups.get(identity);
    if (group === undefined) {
      group = { identity, usedBytes: 0, members: new Set() };
      this.#groups.set(identity, group);
    }
    const budget = new ByteBudget(limitBytes, this, group, cut);
    group.members.add(budget);
    return budget;
  }

  leave(budget: ByteBudget): void {
    const { group } = budget;
    group.members.delete(budget);
    if (group.members.size === 0 && this.#groups.get(group.identity) === group)
      this.#groups.delete(group.identity);
  }

  take(sizeBytes: number, by: ByteBudget): boolean {
    if (this.#usedBytes + sizeBytes > this.#limitBytes && !this.#makeRoom(sizeBytes, by))
      return false;
    this.#usedBytes += sizeBytes;
    return true;
  }

  give(sizeBytes: number): void {
    this.#usedBytes -= sizeBytes;
  }

  #makeRoom(sizeBytes: number, by: ByteBudget): boolean {
    for (let cuts = 0; cuts < MAX_CUTS_AT_ONCE; cuts++) {
      const victim = this.#largestHolder();
      if (victim === undefined || victim === by) return false;
      const isSameClient = victim.group === by.group;
      const [held, wanted] = isSameClient
        ? [victim.usedBytes, by.usedBytes]
        : [victim.group.usedBytes, by.group.usedBytes];
      if (wanted + sizeBytes > held) return false;
      victim.isCut = true;
      this.cuts++;
      victim.cut();
      if (this.#usedBytes + sizeBytes <= this.#limitBytes) return true;
    }
    return false;
  }

  #largestHolder(): ByteBudget | undefined {
    let largest: BudgetGroup | undefined;
    for (const group of this.#groups.values()) {
      if (largest === undefined || group.usedBytes > largest.usedBytes) largest = group;
    }
    let holder: ByteBudget | undefined;
    for (const budget of largest?.members ?? []) {
      if (!budget.isCut && (holder === undefined || budget.usedBytes > holder.usedBytes))
        holder = budget;
    }
    return holder;
  }
}
