/**
 * This member's side of its transport. The transport is built before the parts that answer it, and
 * opened after them.
 */
import type { raftpb } from "@quorate/proto";
import type { AskMembers, SnapshotStream, TransportListener } from "@quorate/transport";
import type { LinkQuestions } from "../membership/index.ts";

/** What the transport hands to its member, and requests of it. */
export type PeerPortTarget = TransportListener & LinkQuestions;

export class PeerPort implements TransportListener, LinkQuestions {
  #target: PeerPortTarget | undefined;

  attach(target: PeerPortTarget): void {
    this.#target = target;
  }

  /** @throws Error where the transport is used before it is opened */
  get #attached(): PeerPortTarget {
    if (this.#target === undefined) throw new Error("the transport is not open yet");
    return this.#target;
  }

  // Properties, not methods: a transport takes them one by one.

  readonly received = (messages: readonly raftpb.Message[]): void =>
    this.#attached.received(messages);

  readonly snapshotReceived = (stream: SnapshotStream): Promise<void> =>
    this.#attached.snapshotReceived(stream);

  readonly unreachable = (id: bigint): void => this.#attached.unreachable(id);

  readonly snapshotSent = (id: bigint, taken: boolean): void =>
    this.#attached.snapshotSent(id, taken);

  readonly isRemoved = (id: bigint): boolean => this.#attached.isRemoved(id);

  readonly selfRemoved = (): void => this.#attached.selfRemoved();

  readonly askMembers: AskMembers = (...call) => this.#attached.askMembers(...call);
}
