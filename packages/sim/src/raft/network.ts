/** Messages on their way: lost, doubled, overtaken and cut off as the options say. */
import type { Random } from "@quorate/host";
import { raftpb } from "@quorate/proto";
import type { ScheduleOptions } from "./options.ts";

/** Most messages on their way at once; a new one then pushes a random one out. */
const MAX_MESSAGES = 200;
const MAX_LATE_MESSAGES = 40;

export class SimNetwork {
  readonly #options: ScheduleOptions;
  readonly #random: Random;
  #messages: raftpb.Message[] = [];
  /** Those that take their time. */
  #late: raftpb.Message[] = [];
  /** Members by side; those on different sides do not reach one another. */
  #sides = new Map<bigint, number>();
  #faults = true;
  /** Called when a snapshot was lost, to report it to its sender. */
  onSnapshotLost: (message: raftpb.Message) => void = () => {};

  constructor(options: ScheduleOptions, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  get size(): number {
    return this.#messages.length;
  }

  /** From here on everything arrives, once and in order. */
  heal(): void {
    this.#faults = false;
    this.#sides.clear();
    for (const message of this.#late.splice(0)) this.#push(message);
  }

  /** Cuts `ids` off from the others. */
  partition(ids: readonly bigint[]): void {
    this.#sides.clear();
    for (const id of ids) this.#sides.set(id, 1);
  }

  send(message: raftpb.Message): void {
    const { loss, duplication, lateness } = this.#options;
    if (this.#faults && this.#random.unit() < loss) {
      this.#lose(message);
      return;
    }
    if (!this.#faults || this.#random.unit() >= lateness) this.#push(message);
    else this.#delay(message);
    if (!this.#faults || this.#random.unit() >= duplication) return;
    if (this.#random.below(2) === 0) this.#push(message);
    else this.#delay(message);
  }

  #delay(message: raftpb.Message): void {
    if (this.#late.length >= MAX_LATE_MESSAGES)
      this.#lose(this.#late.splice(this.#random.below(this.#late.length), 1)[0]);
    this.#late.push(message);
  }

  /** A late message joins the others. */
  wake(): void {
    if (this.#late.length > 0)
      this.#push(this.#late.splice(this.#random.below(this.#late.length), 1)[0]);
  }

  #push(message: raftpb.Message): void {
    if (this.#messages.length >= MAX_MESSAGES && this.#faults)
      this.#lose(this.#messages.splice(this.#random.below(this.#messages.length), 1)[0]);
    this.#messages.push(
      this.#options.encode ? raftpb.Message.decode(raftpb.Message.encode(message)) : message,
    );
  }

  #lose(message: raftpb.Message): void {
    if (message.type === raftpb.MessageType.MsgSnap) this.onSnapshotLost(message);
  }

  /** The next message to arrive; undefined if there is none, or if it got lost at a partition. */
  next(): raftpb.Message | undefined {
    if (this.#messages.length === 0) return undefined;
    const overtaking = this.#faults && this.#random.unit() < this.#options.reordering;
    const at = overtaking ? this.#random.below(this.#messages.length) : 0;
    const message = at === 0 ? this.#messages.shift()! : this.#messages.splice(at, 1)[0];
    if ((this.#sides.get(message.from) ?? 0) !== (this.#sides.get(message.to) ?? 0)) {
      this.#lose(message);
      return undefined;
    }
    return message;
  }
}
