/**
 * Deadlines of calls, cheap to set and to drop: nearly every call ends long before its own. They
 * fall into slots of a few milliseconds, and only a slot has a timer.
 */
import type { Clock, Timer } from "@quorate/host";

/** How late a deadline may be noticed; never early. */
export const DEADLINE_SLOT_MS = 10;

/** What has a deadline. */
export interface Expiring {
  /** Monotonic milliseconds; must not change while it is in the queue. */
  readonly deadlineMs: number | undefined;
  /** Called once, at or after the deadline, unless it was removed. */
  expired(): void;
}

interface Slot {
  readonly members: Set<Expiring>;
  readonly timer: Timer;
}

export class DeadlineQueue {
  readonly #clock: Clock;
  readonly #slots = new Map<number, Slot>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Waits for the item's deadline, if it has one. */
  add(item: Expiring): void {
    if (item.deadlineMs === undefined) return;
    const number = slotOf(item.deadlineMs);
    let slot = this.#slots.get(number);
    if (slot === undefined) {
      const delayMs = number * DEADLINE_SLOT_MS - this.#clock.monotonicMs();
      slot = {
        members: new Set(),
        timer: this.#clock.after(Math.max(0, delayMs), () => this.#run(number)),
      };
      this.#slots.set(number, slot);
    }
    slot.members.add(item);
  }

  /** Stops waiting; does nothing for an item that is not waited for. */
  remove(item: Expiring): void {
    if (item.deadlineMs === undefined) return;
    const number = slotOf(item.deadlineMs);
    const slot = this.#slots.get(number);
    if (slot === undefined || !slot.members.delete(item) || slot.members.size > 0) return;
    // A slot that is soon over is likely to be used again, and its timer runs soon anyway.
    if (number * DEADLINE_SLOT_MS - this.#clock.monotonicMs() < 1000) return;
    slot.timer.cancel();
    this.#slots.delete(number);
  }

  /** Drops all items and timers. */
  clear(): void {
    for (const slot of this.#slots.values()) slot.timer.cancel();
    this.#slots.clear();
  }

  #run(number: number): void {
    const slot = this.#slots.get(number);
    if (slot === undefined) return;
    // A member may remove another, or add one that is late already: the set's iteration follows
    // both.
    for (const item of slot.members) item.expired();
    this.#slots.delete(number);
  }
}

function slotOf(deadlineMs: number): number {
  return Math.ceil(deadlineMs / DEADLINE_SLOT_MS);
}
