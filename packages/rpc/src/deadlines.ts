/**
 * Deadlines of calls, cheap to add and to remove: nearly every call ends long before its own.
 * Deadlines are grouped into slots of a few milliseconds with one timer each.
 */
import { BriefMap, type Clock, type Timer } from "@quorate/host";

/** The most by which `expired` is late; it is never early. */
export const DEADLINE_SLOT_MS = 10;

/** An item with a deadline. */
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
  readonly #slots = new BriefMap<number, Slot>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds the item, if it has a deadline. */
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

  /** Removes the item; does nothing if it is not in the queue. */
  remove(item: Expiring): void {
    if (item.deadlineMs === undefined) return;
    const number = slotOf(item.deadlineMs);
    const slot = this.#slots.get(number);
    if (slot === undefined || !slot.members.delete(item) || slot.members.size > 0) return;
    // A slot that ends soon is likely to be used again, and its timer fires soon anyway.
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
    // `expired` may remove another member, or add one that is late already: the iteration over the
    // set includes such changes.
    for (const item of slot.members) item.expired();
    this.#slots.delete(number);
  }
}

function slotOf(deadlineMs: number): number {
  return Math.ceil(deadlineMs / DEADLINE_SLOT_MS);
}
