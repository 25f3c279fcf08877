/** Streams this member's store to one whose log is too far behind, or that has asked for it. */
import type { Logger } from "@quorate/host";
import { EMPTY, idToHex, raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import type { Transport } from "@quorate/transport";
import type { Lifetime } from "../loop/lifetime.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { LogMarks } from "./persistence.ts";
import type { SentSnapshots } from "./sent-snapshots.ts";

export interface SnapshotSenderParts {
  readonly memberId: bigint;
  readonly store: StoreRef;
  readonly raft: Pick<Raft, "term">;
  readonly transport: Pick<Transport, "sendSnapshot">;
  readonly sent: SentSnapshots;
  readonly marks: LogMarks;
  readonly lifetime: Lifetime;
  readonly logger: Logger;
}

export class SnapshotSender {
  readonly #parts: SnapshotSenderParts;

  constructor(parts: SnapshotSenderParts) {
    this.#parts = parts;
  }

  /** Streams the store to a peer that has requested it, outside of Raft. */
  sendTo(id: bigint): void {
    const { memberId, raft } = this.#parts;
    const { MsgSnap } = raftpb.MessageType;
    this.send(raftpb.Message.create({ type: MsgSnap, to: id, from: memberId, term: raft.term }));
  }

  /**
   * Streams the store to the peer that Raft's message is for. The transport reports how it
   * ended to SentSnapshots.
   */
  send(message: raftpb.Message): void {
    const { logger, transport, sent: all, marks, store, lifetime } = this.#parts;
    const sent = all.begin(message.to, marks.lastIndex);
    if (sent === undefined) return;
    store.current.snapshot().then(
      (snapshot) => {
        if (!all.isCurrent(message.to, sent)) {
          // The store is being closed, or exchanged.
          snapshot.close().catch(lifetime.end);
          return;
        }
        const { index, term, confState } = snapshot.position;
        sent.snapshot = snapshot;
        if (term > message.term) {
          // This member led when the message was made, and another has led since.
          all.ended(message.to, false);
          return;
        }
        sent.index = index;
        logger.info("sending database snapshot", {
          "snapshot-index": index,
          "remote-peer-id": idToHex(message.to),
          bytes: snapshot.sizeEstimateBytes,
        });
        const metadata = { index, term, confState };
        const withData = (data: Uint8Array) => ({ ...message, snapshot: { data, metadata } });
        transport.sendSnapshot({
          message: withData(EMPTY),
          body: snapshot.chunks,
          forEtcd: async () => {
            const { data, chunks } = await snapshot.etcdFile();
            return { message: withData(data), body: chunks, form: "etcd" };
          },
        });
      },
      (error: unknown) => {
        logger.warn("failed to open a snapshot to send", {
          "remote-peer-id": idToHex(message.to),
          error: error instanceof Error ? error.message : String(error),
        });
        all.ended(message.to, false);
      },
    );
  }
}
