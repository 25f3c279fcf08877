/** What the tests of this package share. */
import { ManualClock } from "@quorate/host/testing";
import { type raftpb, walpb } from "@quorate/proto";
import type { WalOptions } from "@quorate/wal";

export const clock = new ManualClock();

/** Options with small segments. */
export function options(segmentBytes = 4096): WalOptions {
  return { clock, segmentBytes };
}

export const START: walpb.Snapshot = walpb.Snapshot.create();

/** An entry whose data can be told from every other's. */
export function entry(index: number, term = 1, dataBytes = 20): raftpb.Entry {
  const data = new Uint8Array(dataBytes);
  for (let i = 0; i < dataBytes; i++) data[i] = 1 + ((index * 31 + term * 7 + i) % 255);
  return { type: 0, term, index, data };
}

export function entries(from: number, to: number, term = 1, dataBytes = 20): raftpb.Entry[] {
  return Array.from({ length: to - from + 1 }, (_, i) => entry(from + i, term, dataBytes));
}

export function state(term: number, commit: number, vote = 0x1701f7e3861531d4n): raftpb.HardState {
  return { term, vote, commit };
}

/** Entries in a form that deepEqual compares well. */
export function plain(list: readonly raftpb.Entry[]): { type: number; term: number; index: number; data: string }[] {
  return list.map(({ type, term, index, data }) => ({ type, term, index, data: Buffer.from(data).toString("hex") }));
}
