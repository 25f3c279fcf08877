/**
 * The border between other members' messages and Raft. What a message carries for the log is
 * checked before Raft sees it, and what Raft refuses is counted and logged here. No message of a
 * member, whatever it holds, ends this one.
 *
 *     transport -> PeerPort -> received -> admit -> Raft.step -> refuse, where it has a reason
 */
import type { Clock, Logger } from "@quorate/host";
import type { Counter, Family } from "@quorate/metrics";
import { EtcdError, idToHex, raftpb, WireError } from "@quorate/proto";
import { messageName, type Raft } from "@quorate/raft";
import {
  checkConfChangeData,
  checkEntryData,
  InvalidRequestError,
  type RequestLimits,
} from "@quorate/store";
import {
  type AskMembers,
  type PeerCall,
  RareLog,
  type SnapshotStream,
  type TransportListener,
} from "@quorate/transport";
import type { SentSnapshots } from "../apply/sent-snapshots.ts";
import type { SnapshotReceiver } from "../apply/snapshot-receiver.ts";
import type { MemberConfig } from "../config/member-config.ts";
import { askMembers, type Departure, type LinkQuestions } from "../membership/index.ts";
import { checkedUrls } from "../membership/member-urls.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { Lifetime } from "./lifetime.ts";
import { MAX_WAITING_PROPOSALS } from "./limits.ts";
import type { LoopTurns } from "./turns.ts";

const { MsgProp, MsgSnap } = raftpb.MessageType;
const { EntryConfChange, EntryNormal } = raftpb.EntryType;

/** The bits of a request's id above this are the low bits of its proposer's id (proposals.ts). */
const PROPOSER_SHIFT = 48n;
const PROPOSER_MASK = 0xffffn;

interface PeerMessagesParts {
  readonly memberId: bigint;
  readonly limits: RequestLimits;
  readonly raft: Raft;
  readonly turns: LoopTurns;
  readonly lifetime: Lifetime;
  readonly departure: Departure;
  readonly clock: Clock;
  readonly logger: Logger;
  /** By type of message. */
  readonly refused: Family<Counter>;
}

export class PeerMessages {
  readonly #parts: PeerMessagesParts;
  readonly #rareLog: RareLog;

  constructor(parts: PeerMessagesParts) {
    this.#parts = parts;
    this.#rareLog = new RareLog(parts.clock);
  }

  /** Messages of a peer's stream. */
  received(messages: readonly raftpb.Message[]): void {
    const { departure } = this.#parts;
    if (departure.isListening) departure.heard(messages);
    this.step(this.#admit(messages));
  }

  /** Gives Raft messages that may go to it. Before the loop's start and after its end none is. */
  step(messages: readonly raftpb.Message[]): void {
    const { raft, turns, lifetime } = this.#parts;
    if (!turns.areRunning) return;
    try {
      for (const message of messages) {
        const reason = raft.step(message);
        if (reason !== undefined) this.#refuse(message, reason);
      }
    } catch (error) {
      lifetime.end(error);
    }
    turns.wake();
  }

  /**
   * The messages of a peer's stream that may go to Raft: without those, and without the proposals,
   * that no member sends.
   */
  #admit(messages: readonly raftpb.Message[]): readonly raftpb.Message[] {
    if (!messages.some(({ type }) => type === MsgProp || type === MsgSnap)) return messages;
    const admitted: raftpb.Message[] = [];
    for (const message of messages) {
      if (message.type === MsgSnap)
        this.#refuse(message, "the message of a snapshot without its store");
      else if (message.type === MsgProp) {
        const entries = this.#proposable(message);
        if (entries.length > 0)
          admitted.push(
            entries.length === message.entries.length ? message : { ...message, entries },
          );
      } else admitted.push(message);
    }
    return admitted;
  }

  /**
   * The entries that may enter the log. What is wrong with one is no reason to lose those beside
   * it.
   */
  #proposable(message: raftpb.Message): raftpb.Entry[] {
    const { entries, from } = message;
    if (entries.length > MAX_WAITING_PROPOSALS) {
      this.#refuse(
        message,
        `${entries.length} proposals in one message; a member has no more than ${MAX_WAITING_PROPOSALS}`,
      );
      return [];
    }
    return entries.filter((entry) => {
      const problem = this.#problem(entry, from);
      if (problem !== undefined) this.#refuse(message, problem);
      return problem === undefined;
    });
  }

  /** Why an entry must not enter the log; undefined if it may. */
  #problem(entry: raftpb.Entry, from: bigint): string | undefined {
    try {
      const id = this.#idOf(entry);
      if (id >> PROPOSER_SHIFT === (from & PROPOSER_MASK)) return undefined;
      return `a proposal with the id ${idToHex(id)}, which is not one of its sender's`;
    } catch (error) {
      if (
        error instanceof WireError ||
        error instanceof EtcdError ||
        error instanceof InvalidRequestError
      )
        return error.message;
      throw error;
    }
  }

  #idOf({ type, data }: raftpb.Entry): bigint {
    if (type === EntryNormal) return checkEntryData(data, this.#parts.limits);
    if (type === EntryConfChange) return checkConfChangeData(data, checkedUrls);
    // A leader alone leaves a joint configuration, and members make no other such change.
    throw new InvalidRequestError(`a proposal of the entry type ${type}`);
  }

  /** Notes that a peer's message, or a part of it, was not taken. */
  #refuse(message: raftpb.Message, reason: string): void {
    const { memberId, logger, refused } = this.#parts;
    const type = isKnown(message.type) ? messageName(message.type) : "unknown";
    refused.with(type).add();
    const from = idToHex(message.from);
    if (!this.#rareLog.allows(`${from} ${type}`)) return;
    logger.error("refused a message of a peer, which no member sends", {
      "local-member-id": idToHex(memberId),
      "remote-peer-id": from,
      "message-type": type,
      term: message.term,
      index: message.index,
      error: reason,
    });
  }
}

function isKnown(type: number): boolean {
  return Object.values<number>(raftpb.MessageType).includes(type);
}

interface PeerPortParts {
  readonly clusterId: bigint;
  readonly config: MemberConfig;
  readonly raft: Raft;
  readonly turns: LoopTurns;
  readonly store: StoreRef;
  readonly messages: PeerMessages;
  readonly receiver: SnapshotReceiver;
  readonly sent: SentSnapshots;
  readonly departure: Departure;
  readonly call: PeerCall;
  readonly logger: Logger;
}

/** This member's side of its transport: what its peers send, and what the links to them ask. */
export class PeerPort implements TransportListener, LinkQuestions {
  readonly #parts: PeerPortParts;

  constructor(parts: PeerPortParts) {
    this.#parts = parts;
  }

  // Properties, not methods: a transport takes them one by one.

  readonly received = (messages: readonly raftpb.Message[]): void =>
    this.#parts.messages.received(messages);

  readonly snapshotReceived = (stream: SnapshotStream): Promise<void> =>
    this.#parts.receiver.receive(stream);

  readonly unreachable = (id: bigint): void => {
    this.#parts.raft.reportUnreachable(id);
    this.#parts.turns.wake();
  };

  readonly snapshotSent = (id: bigint, taken: boolean): void => this.#parts.sent.ended(id, taken);

  readonly isRemoved = (id: bigint): boolean => this.#parts.store.current.membership.isRemoved(id);

  readonly takesEtcd = (): boolean => this.#parts.store.current.followsEtcd;

  readonly selfRemoved = (): void => this.#parts.departure.known();

  readonly askMembers: AskMembers = (peerUrls, reported) =>
    askMembers(this.#parts, peerUrls, reported);
}
