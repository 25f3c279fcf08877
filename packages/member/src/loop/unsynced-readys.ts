/** Readys whose persistence is under way, oldest first. */
import type { raftpb } from "@quorate/proto";
import type { Ready } from "@quorate/raft";

/** One of them. */
export interface Unsynced {
  readonly number: number;
  /** To send when it and all before it are durable. */
  readonly messages: readonly raftpb.Message[];
  durable: boolean;
  /** Of the last entry that it writes; undefined if there is none. */
  readonly lastIndex: number | undefined;
}

/** The queue. Raft bounds it: it has a Ready only for what fits into its windows. */
export class UnsyncedReadys {
  readonly #steps: Unsynced[] = [];

  /** The last index of the oldest one that has entries and is not durable; undefined: none. */
  get oldestIndex(): number | undefined {
    return this.#steps.find((step) => step.lastIndex !== undefined && !step.durable)?.lastIndex;
  }

  push({ number, messagesAfterSync, entries }: Ready): Unsynced {
    const lastIndex = entries.at(-1)?.index;
    const step = { number, messages: messagesAfterSync, durable: false, lastIndex };
    this.#steps.push(step);
    return step;
  }

  /** Removes and returns the oldest one if it is durable. */
  takeDurable(): Unsynced | undefined {
    return this.#steps[0]?.durable === true ? this.#steps.shift() : undefined;
  }
}
