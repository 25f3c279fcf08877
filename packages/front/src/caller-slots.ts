/**
 * The identities that the member knows of a front-end, each in a slot. Calls of a connection nearly
 * always have the same one, which is found by comparing a few references.
 */
import type { CallContext } from "@quorate/rpc";
import { MAX_IDENTITIES } from "./protocol.ts";

/** An identity: the texts of the protocol, and their slot. */
export interface CallerSlot {
  readonly slot: number;
  readonly texts: readonly (string | undefined)[];
  /** The member is to be told. */
  readonly isNew: boolean;
}

class Entry {
  readonly slot: number;
  readonly texts: readonly (string | undefined)[];
  isNew = true;

  constructor(slot: number, texts: readonly (string | undefined)[]) {
    this.slot = slot;
    this.texts = texts;
  }
}

export class CallerSlots {
  readonly #fields: readonly string[];
  readonly #maxSlots: number;
  /** The last identity of each connection, by its address. */
  readonly #byAddress = new Map<string, Entry>();
  /** By slot. */
  readonly #entries: Entry[] = [];
  #next = 0;

  constructor(fields: readonly string[], maxSlots: number = MAX_IDENTITIES) {
    this.#fields = fields;
    this.#maxSlots = maxSlots;
  }

  /** The slot of a call's client; the oldest slot is given away when all are taken. */
  slotOf(context: CallContext): CallerSlot {
    const known = this.#byAddress.get(context.peerAddress);
    if (known !== undefined && this.#isOf(known.texts, context)) {
      known.isNew = false;
      return known;
    }
    const { peerAddress, peerCommonName, peerSubject } = context;
    const metadata = this.#fields.map((name) => context.metadata(name));
    // A new identity of a connection takes the slot of the one before: calls that have it keep it.
    const slot = known?.slot ?? this.#newSlot();
    const entry = new Entry(slot, [peerAddress, peerCommonName, peerSubject, ...metadata]);
    this.#entries[slot] = entry;
    this.#byAddress.set(peerAddress, entry);
    return entry;
  }

  #newSlot(): number {
    const slot = this.#next;
    this.#next = (slot + 1) % this.#maxSlots;
    const before = this.#entries[slot]?.texts[0];
    if (before !== undefined) this.#byAddress.delete(before);
    return slot;
  }

  #isOf(texts: readonly (string | undefined)[], context: CallContext): boolean {
    if (texts[1] !== context.peerCommonName || texts[2] !== context.peerSubject) return false;
    let at = 3;
    for (const field of this.#fields) if (texts[at++] !== context.metadata(field)) return false;
    return true;
  }
}
