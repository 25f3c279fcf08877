/**
 * The store of another member, as it comes over the peer port: because the leader's log is too
 * short for this member, or because this one has requested it.
 */
import type { Clock, Disk, KeyspaceOpener, Logger } from "@quorate/host";
import { idToHex, type raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import { dropIncoming, receiveEtcdFile, receiveSnapshot } from "@quorate/store";
import type { SnapshotStream } from "@quorate/transport";
import type { MemberConfig } from "../config/member-config.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";

export interface SnapshotReceiverParts {
  readonly raft: Pick<Raft, "appliedIndex">;
  /** Where the message of a snapshot goes on to Raft. */
  readonly messages: { step(messages: readonly raftpb.Message[]): void };
  readonly clock: Clock;
  readonly disk: Disk;
  readonly keyspaces: KeyspaceOpener;
  readonly config: Pick<MemberConfig, "storeDir">;
  readonly metrics: Pick<MemberMetrics, "snapshotStoreDuration">;
  readonly logger: Logger;
}

/** A store that this member waits for outside of Raft. */
export interface ExpectedStore {
  /** Resolves when it begins to come. */
  readonly begun: Promise<void>;
  /** Resolves with its index when it is there; rejects where it breaks off. */
  readonly arrived: Promise<number>;
  /** It is not waited for any more. */
  release(): void;
}

/** Callbacks about the leader's store that this member waits for outside of Raft. */
interface Expecting {
  begins(): void;
  /** @throws Error where another came before */
  came(index: number): void;
  failed(error: Error): void;
}

export class SnapshotReceiver {
  readonly #parts: SnapshotReceiverParts;
  #receiving = false;
  /** Set while this member waits for the leader's store outside of Raft. */
  #expecting: Expecting | undefined;

  constructor(parts: SnapshotReceiverParts) {
    this.#parts = parts;
  }

  /** True from `expect` to its release. */
  get isExpecting(): boolean {
    return this.#expecting !== undefined;
  }

  /**
   * Takes a snapshot from a peer into a directory of its own and then hands its message to Raft,
   * which decides whether to use it. Of one that is not ahead the message alone goes to Raft, whose
   * response names this member's commit index: without it the leader would send the same snapshot
   * for ever where the response to the first one was lost.
   *
   * @throws Error where the snapshot was not taken
   */
  async receive(stream: SnapshotStream): Promise<void> {
    const { logger, disk, config, clock, raft, messages, metrics } = this.#parts;
    const { message } = stream;
    const index = message.snapshot?.metadata.index ?? 0;
    if (this.#receiving) throw new Error("another snapshot is being received");
    if (this.#expecting === undefined && index <= raft.appliedIndex) {
      messages.step([message]);
      throw new Error(`the snapshot's index ${index} is not ahead of this member`);
    }
    this.#receiving = true;
    const startMs = clock.monotonicMs();
    this.#expecting?.begins();
    try {
      if (this.#expecting === undefined) dropIncoming(disk, config.storeDir, raft.appliedIndex);
      logger.info("receiving database snapshot", {
        "snapshot-index": index,
        "remote-snapshot-sender-id": idToHex(message.from),
      });
      await this.#take(stream, index);
      metrics.snapshotStoreDuration.observe((clock.monotonicMs() - startMs) / 1000);
      logger.info("received and saved database snapshot", {
        "snapshot-index": index,
        "remote-snapshot-sender-id": idToHex(message.from),
      });
      if (this.#expecting !== undefined) this.#expecting.came(index);
      else messages.step([message]);
    } catch (error) {
      this.#expecting?.failed(error as Error);
      throw error;
    } finally {
      this.#receiving = false;
    }
  }

  async #take({ body, form, message }: SnapshotStream, index: number): Promise<void> {
    const { disk, keyspaces, config } = this.#parts;
    const deps = { disk, keyspaces };
    const metadata = message.snapshot?.metadata;
    if (form !== "etcd") {
      await receiveSnapshot(deps, config.storeDir, index, body, undefined, metadata);
      return;
    }
    if (metadata === undefined) throw new Error("a snapshot's message without the snapshot");
    await receiveEtcdFile(deps, config.storeDir, metadata, body);
  }

  /**
   * The next store that arrives is not Raft's. Until its release the log gets no new beginning and
   * no other store is taken; the one that came must not be older than LogMarks.leastIndex, where
   * the log begins.
   */
  expect(): ExpectedStore {
    const { disk, config, raft } = this.#parts;
    // One that came for an attempt that failed is of no use any more, and takes as much of the disk
    // as the store.
    if (!this.#receiving) dropIncoming(disk, config.storeDir, raft.appliedIndex);
    const begun = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<number>();
    // It may break off before anybody waits for it.
    arrived.promise.catch(() => {});
    let came = false;
    const expecting: Expecting = {
      begins: () => begun.resolve(),
      came(index) {
        if (came) throw new Error("another store has come already");
        came = true;
        arrived.resolve(index);
      },
      failed: (error) => arrived.reject(error),
    };
    this.#expecting = expecting;
    return {
      begun: begun.promise,
      arrived: arrived.promise,
      release: () => {
        if (this.#expecting === expecting) this.#expecting = undefined;
      },
    };
  }
}
