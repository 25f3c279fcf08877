/**
 * Shares the connection slots of a listener fairly. File descriptors are few, and any client that
 * reaches a port can open any number of connections.
 *
 *     accepted --> unidentified --(handshake, headers)--> identified --> closed
 *
 *     unidentified   a share of the slots, a deadline per stage;
 *                    full: closes the oldest of the address with the most
 *     identified     the rest of the slots, grouped by identity;
 *                    full: closes the longest idle of the largest group
 *
 * A new connection is refused only if its own group is the largest and has no idle one. An idle
 * connection has no call. Under pressure (three quarters of the slots in use) connections that have
 * been idle for long are drained, the longest idle first. Time is passed in.
 */

/** A connection, as an interface for the slots. */
export interface SlotConnection {
  /** Start of the idle time, in monotonic milliseconds; undefined while it has a call. */
  idleSinceMs(): number | undefined;
  /** Drains the connection: the client moves away without losing a call, then it closes. */
  drain(): void;
  /** Closes it now, with a notification to the client where the protocol has one. */
  leave(): void;
  /** Closes its socket without a notification. */
  destroy(): void;
}

export interface SlotLimits {
  /** Identified connections. */
  readonly maxConnections: number;
  /** Connections in handshakes, and those that never identify themselves. */
  readonly maxUnidentified: number;
  /**
   * Timeout of each stage: the TLS handshake; then everything up to the end of the first headers.
   */
  readonly stageTimeoutMs: number;
  /** Longest idle time while three quarters of the slots are in use. */
  readonly idleUnderPressureMs: number;
}

/** Counts since the start. */
export interface SlotCounters {
  /** Unidentified connections closed by a stage's timeout. */
  readonly timedOut: number;
  /** Unidentified connections closed for a newer one. */
  readonly displacedUnidentified: number;
  /** Identified connections closed for one of a smaller group, or of their own. */
  readonly displaced: number;
  /** Idle connections drained under pressure. */
  readonly drained: number;
  /** New connections refused. */
  readonly refused: number;
}

/** The slot of one connection. */
export interface Slot {
  readonly connection: SlotConnection;
  readonly address: string;
  /** Its group: the address while it is unidentified. */
  group: string;
  stage: "unidentified" | "identified" | "leaving" | "closed";
  /** Deadline of its present stage; infinite for an unidentified one that is served. */
  deadlineMs: number;
  isDraining: boolean;
  readonly late: () => void;
}

/**
 * The share of the slots freed at once when all are in use, so that a flood needs few searches.
 */
const FREED_PARTS = 256;
/** The largest share of slots held by closing connections. */
const LEAVING_PARTS = 16;

export class ConnectionSlots {
  readonly #limits: SlotLimits;
  readonly #unidentified = new Groups();
  readonly #identified = new Groups();
  readonly #leaving = new Set<Slot>();
  #timedOut = 0;
  #displacedUnidentified = 0;
  #displaced = 0;
  #drained = 0;
  #refused = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  get unidentified(): number {
    return this.#unidentified.size;
  }

  get identified(): number {
    return this.#identified.size;
  }

  get counters(): SlotCounters {
    return {
      timedOut: this.#timedOut,
      displacedUnidentified: this.#displacedUnidentified,
      displaced: this.#displaced,
      drained: this.#drained,
      refused: this.#refused,
    };
  }

  /**
   * Adds an accepted connection. There is always a slot: if the share is full, another connection
   * is closed.
   * @param address without a port
   * @param late called when a stage times out, before the connection is closed
   */
  open(connection: SlotConnection, address: string, nowMs: number, late: () => void): Slot {
    while (this.#unidentified.size >= this.#limits.maxUnidentified) {
      const oldest = firstOf(this.#unidentified.largest());
      if (oldest === undefined) break;
      this.#displacedUnidentified++;
      this.close(oldest);
      oldest.connection.destroy();
    }
    const deadlineMs = nowMs + this.#limits.stageTimeoutMs;
    const slot: Slot = {
      connection,
      address,
      group: address,
      stage: "unidentified",
      deadlineMs,
      isDraining: false,
      late,
    };
    this.#unidentified.add(slot);
    return slot;
  }

  /** Starts the next stage, with a timeout of its own. */
  nextStage(slot: Slot, nowMs: number): void {
    slot.deadlineMs = nowMs + this.#limits.stageTimeoutMs;
  }

  /**
   * The connection is served although it is unidentified, or waits for this end: it has no deadline
   * and stays in the unidentified share.
   */
  suspend(slot: Slot): void {
    slot.deadlineMs = Number.POSITIVE_INFINITY;
  }

  /**
   * Moves a connection to the group of its identity, after its handshakes or when the identity
   * changes. Returns false if there is no slot: the caller closes the connection.
   */
  identify(slot: Slot, identity: string): boolean {
    if (slot.stage === "leaving" || slot.stage === "closed") return false;
    const before = slot.stage === "identified" ? this.#identified : this.#unidentified;
    before.delete(slot);
    slot.group = identity;
    slot.deadlineMs = Number.POSITIVE_INFINITY;
    if (this.#identified.size >= this.#limits.maxConnections && !this.#freeSlot(identity)) {
      slot.stage = "closed";
      this.#refused++;
      return false;
    }
    slot.stage = "identified";
    this.#identified.add(slot);
    return true;
  }

  /** Removes a closed connection. */
  close(slot: Slot): void {
    if (slot.stage === "unidentified") this.#unidentified.delete(slot);
    else if (slot.stage === "identified") this.#identified.delete(slot);
    else this.#leaving.delete(slot);
    slot.stage = "closed";
  }

  /** Enforces deadlines and drains idle connections. Call about once a second. */
  sweep(nowMs: number): void {
    for (const slot of this.#unidentified.all()) {
      if (nowMs < slot.deadlineMs) continue;
      this.#timedOut++;
      this.close(slot);
      slot.late();
      slot.connection.destroy();
    }
    this.#relievePressure(nowMs);
  }

  /**
   * Frees a slot for a group; false if it is the largest itself and has no idle connection.
   */
  #freeSlot(identity: string): boolean {
    const largest = this.#identified.largest();
    const first = firstOf(largest);
    if (largest === undefined || first === undefined) return false;
    const isOwn = first.group === identity || this.#identified.count(identity) + 1 >= largest.size;
    const group =
      isOwn && this.#identified.count(identity) > 0 ? this.#identified.of(identity) : largest;
    const idle = longestIdle(
      group,
      Math.max(1, Math.floor(this.#limits.maxConnections / FREED_PARTS)),
    );
    if (idle.length > 0) {
      for (const slot of idle) this.#leave(slot);
      return true;
    }
    if (isOwn) return false;
    // All are busy, and one client has more than the new one: its newest connection is closed.
    let newest = first;
    for (const slot of largest) newest = slot;
    this.#leave(newest);
    return true;
  }

  #leave(slot: Slot): void {
    this.#displaced++;
    this.close(slot);
    slot.stage = "leaving";
    this.#leaving.add(slot);
    slot.connection.leave();
    const most = Math.max(1, Math.floor(this.#limits.maxConnections / LEAVING_PARTS));
    for (const oldest of this.#leaving) {
      if (this.#leaving.size <= most) break;
      this.close(oldest);
      oldest.connection.destroy();
    }
  }

  #relievePressure(nowMs: number): void {
    const { maxConnections, idleUnderPressureMs } = this.#limits;
    let excess = this.#identified.size - Math.floor((maxConnections * 3) / 4);
    if (excess <= 0) return;
    const candidates: { readonly slot: Slot; readonly sinceMs: number }[] = [];
    for (const slot of this.#identified.all()) {
      const sinceMs = slot.connection.idleSinceMs();
      if (slot.isDraining) excess--;
      else if (sinceMs !== undefined && nowMs - sinceMs >= idleUnderPressureMs)
        candidates.push({ slot, sinceMs });
    }
    candidates.sort((a, b) => a.sinceMs - b.sinceMs);
    for (const { slot } of candidates) {
      if (excess-- <= 0) return;
      slot.isDraining = true;
      this.#drained++;
      slot.connection.drain();
    }
  }
}

/** The longest idle connections of a group, at most `count`. */
function longestIdle(group: Iterable<Slot>, count: number): Slot[] {
  const idle: { readonly slot: Slot; readonly sinceMs: number }[] = [];
  for (const slot of group) {
    const sinceMs = slot.connection.idleSinceMs();
    if (sinceMs !== undefined) idle.push({ slot, sinceMs });
  }
  idle.sort((a, b) => a.sinceMs - b.sinceMs);
  return idle.slice(0, count).map(({ slot }) => slot);
}

/** Slots by group, oldest first. */
class Groups {
  readonly #groups = new Map<string, Set<Slot>>();
  size = 0;

  count(group: string): number {
    return this.#groups.get(group)?.size ?? 0;
  }

  of(group: string): ReadonlySet<Slot> {
    return this.#groups.get(group) ?? new Set();
  }

  add(slot: Slot): void {
    const group = this.#groups.get(slot.group);
    if (group === undefined) this.#groups.set(slot.group, new Set([slot]));
    else group.add(slot);
    this.size++;
  }

  delete(slot: Slot): void {
    const group = this.#groups.get(slot.group);
    if (group === undefined || !group.delete(slot)) return;
    this.size--;
    if (group.size === 0) this.#groups.delete(slot.group);
  }

  /** The group with the most slots; undefined if there is none. */
  largest(): ReadonlySet<Slot> | undefined {
    let largest: Set<Slot> | undefined;
    for (const group of this.#groups.values())
      if (largest === undefined || group.size > largest.size) largest = group;
    return largest;
  }

  *all(): Iterable<Slot> {
    for (const group of [...this.#groups.values()]) yield* [...group];
  }
}

/** The longest held slot of a group. */
function firstOf(group: ReadonlySet<Slot> | undefined): Slot | undefined {
  return group?.values().next().value;
}
