/**
 * Who may hold a connection of one listener. File descriptors are few, and whoever reaches a port
 * can open any number of connections.
 *
 *     accepted --> unidentified --(handshake, headers)--> identified, in its group --> closed
 *                     |  a share of its own, a deadline for each stage       |  the rest of the
 *                        slots
 *                     |  full: the oldest one of the address with the most   |  full: the longest
 *                        idle of the largest group
 *
 * A newcomer is refused only if its own group is the largest and has nothing idle. An idle
 * connection has no call; under pressure (three quarters of the slots are taken) those that have
 * been idle for long are asked to go, the longest idle first. Time is passed in.
 */

/** A connection, as the table of slots sees it. */
export interface SlotConnection {
  /** Since when it has had no call, in monotonic milliseconds; undefined while it has one. */
  idleSinceMs(): number | undefined;
  /** Asks the client to go, without loss of a call; the connection closes when it has. */
  drain(): void;
  /** Ends it now: the client is notified where the protocol allows it. */
  leave(): void;
  /** Closes its socket without a word. */
  destroy(): void;
}

export interface SlotLimits {
  /** Identified connections. */
  readonly maxConnections: number;
  /** Connections in their handshakes, and those that never say who they are. */
  readonly maxUnidentified: number;
  /**
   * How long each stage may take: the TLS handshake; then all up to the end of the first headers.
   */
  readonly stageTimeoutMs: number;
  /** How long a connection may be idle while three quarters of the slots are taken. */
  readonly idleUnderPressureMs: number;
}

/** What was counted since the start. */
export interface SlotCounters {
  /** Unidentified connections whose stage did not end in time. */
  readonly timedOut: number;
  /** Unidentified connections that went for a newer one. */
  readonly displacedUnidentified: number;
  /** Identified connections that went for one of a smaller group, or of their own. */
  readonly displaced: number;
  /** Idle connections that were asked to go under pressure. */
  readonly drained: number;
  /** Newcomers that found no slot. */
  readonly refused: number;
}

/** The place of one connection. */
export interface Slot {
  readonly connection: SlotConnection;
  readonly address: string;
  /** The group it is counted in: an address while it is unidentified. */
  group: string;
  stage: "unidentified" | "identified" | "leaving" | "closed";
  /** When its present stage must be over; infinity for an unidentified one that is being served. */
  deadlineMs: number;
  isDraining: boolean;
  readonly late: () => void;
}

/**
 * This part of the slots is freed at once when all are taken, so that a flood does not pay for one
 * search each.
 */
const FREED_PARTS = 256;
/** This part of the slots may be held by connections that are about to close. */
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
   * A connection was accepted. Always has a slot: if the share is full, another one goes.
   * @param address without a port. @param late called when a stage did not end in time, before the
   * connection is closed
   */
  open(connection: SlotConnection, address: string, nowMs: number, late: () => void): Slot {
    while (this.#unidentified.size >= this.#limits.maxUnidentified) {
      const [oldest] = this.#unidentified.largest()!;
      this.#displacedUnidentified++;
      this.close(oldest!);
      oldest!.connection.destroy();
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

  /** A stage is over, and the next one begins: it has its own time. */
  nextStage(slot: Slot, nowMs: number): void {
    slot.deadlineMs = nowMs + this.#limits.stageTimeoutMs;
  }

  /**
   * The connection is being served although nobody knows whose it is: it has no deadline, and stays
   * in the share of its kind.
   */
  served(slot: Slot): void {
    slot.deadlineMs = Number.POSITIVE_INFINITY;
  }

  /**
   * It is known whose the connection is, and its handshakes are over. Moves it to the group of its
   * identity; again for another identity. False if there is no slot: the caller closes the
   * connection.
   */
  identify(slot: Slot, identity: string): boolean {
    if (slot.stage === "leaving" || slot.stage === "closed") return false;
    const before = slot.stage === "identified" ? this.#identified : this.#unidentified;
    before.delete(slot);
    slot.group = identity;
    slot.deadlineMs = Number.POSITIVE_INFINITY;
    if (this.#identified.size >= this.#limits.maxConnections && !this.#makeRoom(identity)) {
      slot.stage = "closed";
      this.#refused++;
      return false;
    }
    slot.stage = "identified";
    this.#identified.add(slot);
    return true;
  }

  /** The connection is gone. */
  close(slot: Slot): void {
    if (slot.stage === "unidentified") this.#unidentified.delete(slot);
    else if (slot.stage === "identified") this.#identified.delete(slot);
    else this.#leaving.delete(slot);
    slot.stage = "closed";
  }

  /** Looks after deadlines and idle connections; to be called about once a second. */
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
   * Makes room for one more of a group; false if it is the largest itself and all of it is busy.
   */
  #makeRoom(identity: string): boolean {
    const largest = this.#identified.largest()!;
    const [first] = largest;
    const isOwn = first!.group === identity || this.#identified.count(identity) + 1 >= largest.size;
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
    // All of them are busy, and still one client has more than the one that has come: its newest
    // goes.
    let newest = first!;
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

/** The idle connections of a group that have been idle for longest, `count` at most. */
function longestIdle(group: Iterable<Slot>, count: number): Slot[] {
  const idle: { readonly slot: Slot; readonly sinceMs: number }[] = [];
  for (const slot of group) {
    const sinceMs = slot.connection.idleSinceMs();
    if (sinceMs !== undefined) idle.push({ slot, sinceMs });
  }
  idle.sort((a, b) => a.sinceMs - b.sinceMs);
  return idle.slice(0, count).map(({ slot }) => slot);
}

/** Slots by group, in the order in which they came. */
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
