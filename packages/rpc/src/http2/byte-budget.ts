/**
 * Bytes of one kind that connections hold, with a bound for each connection and one for all of
 * them.
 *
 * When the bound of all is reached, the largest holder is cut off: of the client (identity) that
 * holds the most, the connection that holds the most. Only a request by the largest holder itself
 * is refused. A client that holds less than an equal share is therefore always served, however much
 * others hold.
 */

/** The most connections that one request may cut off. */
const MAX_CUTS_AT_ONCE = 32;

/** The bytes of one connection. */
export class ByteBudget {
  readonly #limitBytes: number;
  readonly #whole: SharedBudget;
  /** @internal The budget's client. */
  readonly group: BudgetGroup;
  /** @internal Ends the connection. */
  readonly cut: () => void;
  /** @internal The connection is ending: what it still holds will become free. */
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

  /** True when more than half is used, by this connection or in total: senders should slow down. */
  get isHigh(): boolean {
    return this.#usedBytes * 2 > this.#limitBytes || this.#whole.isHigh;
  }

  /**
   * Takes the bytes and returns true; returns false and takes none if a bound would be exceeded.
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

  /** The connection is gone. What it holds still counts until it is released. */
  leave(): void {
    this.isCut = true;
    this.#whole.leave(this);
  }
}

/** The connections of one client, and the bytes that they hold together. */
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
  /** Number of connections that were cut off. */
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
   * The budget of a new connection. @param identity its client. @param cut ends the connection,
   * which then releases what it holds
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
    if (this.#usedBytes + sizeBytes > this.#limitBytes && !this.#cutLargest(sizeBytes, by))
      return false;
    this.#usedBytes += sizeBytes;
    return true;
  }

  give(sizeBytes: number): void {
    this.#usedBytes -= sizeBytes;
  }

  #cutLargest(sizeBytes: number, by: ByteBudget): boolean {
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
