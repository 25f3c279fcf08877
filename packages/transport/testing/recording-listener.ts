/** A listener that records the calls of its transport. */
import type { raftpb } from "@quorate/proto";
import type { SnapshotStream, TransportListener } from "../src/transport.ts";

/** Messages of this term and later ones only find out whether a link works. */
export const PROBE_TERM = 1001;

export class RecordingListener implements TransportListener {
  readonly messages: raftpb.Message[] = [];
  /** Those of PROBE_TERM and later. */
  readonly probes: raftpb.Message[] = [];
  /** How many messages came with each call. */
  readonly batches: number[] = [];
  readonly unreachables: bigint[] = [];
  readonly snapshotsSent: { readonly id: bigint; readonly taken: boolean }[] = [];
  readonly snapshots: {
    readonly message: raftpb.Message;
    readonly sizeBytes: number;
    readonly checksum: number;
  }[] = [];
  /** Snapshots that could not be read to their end. */
  readonly brokenSnapshots: string[] = [];
  /** Called for each chunk of a snapshot; a throw or rejection refuses the rest. */
  onChunk: (chunk: Uint8Array) => void | Promise<void> = () => {};

  received(messages: readonly raftpb.Message[]): void {
    const others = messages.filter(({ term }) => term < PROBE_TERM);
    this.probes.push(...messages.filter(({ term }) => term >= PROBE_TERM));
    if (others.length === 0) return;
    this.batches.push(others.length);
    this.messages.push(...others);
  }

  async snapshotReceived(stream: SnapshotStream): Promise<void> {
    let sizeBytes = 0;
    let checksum = 0;
    try {
      for await (const chunk of stream.body) {
        sizeBytes += chunk.length;
        checksum = checksumOf(chunk, checksum);
        await this.onChunk(chunk);
      }
    } catch (error) {
      this.brokenSnapshots.push(String(error));
      throw error;
    }
    this.snapshots.push({ message: stream.message, sizeBytes, checksum });
  }

  unreachable(id: bigint): void {
    this.unreachables.push(id);
  }

  snapshotSent(id: bigint, taken: boolean): void {
    this.snapshotsSent.push({ id, taken });
  }
}

/** A checksum that also sees the order of bytes; goes on from `before`. */
export function checksumOf(chunk: Uint8Array, before = 0): number {
  let sum = before;
  for (const byte of chunk) sum = (Math.imul(sum, 31) + byte) | 0;
  return sum;
}
