/** The machine's door. */
import type { raftpb } from "@quorate/proto";
import type { InitialState, RaftConfig } from "./config.ts";
import type { Ready, Role } from "./ready.ts";
import type { ConfChangeResult, ProposeResult, ReadIndexResult, Status, TransferResult } from "./status.ts";

export declare class Raft {
  constructor(config: RaftConfig, initial: InitialState);
  readonly id: bigint;
  readonly term: number;
  readonly leader: bigint;
  readonly role: Role;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  readonly stableIndex: number;
  readonly confState: raftpb.ConfState;
  tick(): void;
  step(message: raftpb.Message): void;
  propose(payloads: readonly Uint8Array[]): ProposeResult;
  proposeConfChange(change: raftpb.ConfChange | raftpb.ConfChangeV2): ConfChangeResult;
  applyConfChange(change: raftpb.ConfChangeV2): raftpb.ConfState;
  readIndex(context: Uint8Array): ReadIndexResult;
  campaign(): void;
  forgetLeader(): void;
  transferLeadership(to: bigint): TransferResult;
  reportUnreachable(id: bigint): void;
  reportSnapshot(id: bigint, ok: boolean): void;
  hasReady(): boolean;
  ready(): Ready;
  persisted(readyNumber: number): void;
  applied(index: number): void;
  compact(index: number, confState: raftpb.ConfState): void;
  /** The term of a held entry or of the snapshot mark; undefined for any other index. */
  termOf(index: number): number | undefined;
  status(): Status;
}
