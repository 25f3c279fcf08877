/**
 * Maintenance.Snapshot: the store as etcd's snapshot file, in messages of 32 KiB, the SHA-256 in
 * one of its own at the end (etcd: api/v3rpc/maintenance.go). The member goes on serving; a slow
 * reader holds back the reading of the store, so that no more than one slice of it waits in memory.
 */
import type { Timer } from "@quorate/host";
import type { Member } from "@quorate/member";
import {
  type Caller,
  callerOf,
  clusterVersionOf,
  FairLimiter,
  SERVER_VERSION,
} from "@quorate/member";
import {
  errorOf,
  GrpcCode,
  MaintenanceService,
  putVarint,
  SnapshotRequest,
  SnapshotResponse,
  varintSize,
} from "@quorate/proto";
import {
  StatusError,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
} from "@quorate/rpc";
import type { EtcdSnapshot } from "@quorate/store";
import { PacedCall } from "./paced-call.ts";

/** As in etcd. */
const MESSAGE_BYTES = 32 * 1024;
/**
 * Snapshots that are sent at once, of all clients and of one: each holds what compaction would give
 * back. More wait, in turn by client.
 */
export const MAX_CLIENT_SNAPSHOTS = 8;
export const MAX_SNAPSHOTS_OF_ONE_CLIENT = 4;
/** Snapshots that wait; one more is refused. */
export const MAX_WAITING_SNAPSHOTS = 64;
export const MAX_WAITING_SNAPSHOTS_OF_ONE_CLIENT = 8;
/** A client must take so many bytes in this time, or its snapshot ends and the next one begins. */
export const SNAPSHOT_STALL_MS = 30_000;
export const MIN_SNAPSHOT_PROGRESS_BYTES = 256 * 1024;

/** The handlers of the service's stream, by path. */
export function snapshotStreams(member: Member): ReadonlyMap<string, StreamHandler> {
  const queue = new FairLimiter({
    maxRunning: MAX_CLIENT_SNAPSHOTS,
    maxRunningPerClient: MAX_SNAPSHOTS_OF_ONE_CLIENT,
    maxWaiting: MAX_WAITING_SNAPSHOTS,
    maxWaitingPerClient: MAX_WAITING_SNAPSHOTS_OF_ONE_CLIENT,
  });
  const { metrics } = member;
  const count = () => {
    metrics.snapshotsSending.value = queue.running;
    metrics.snapshotsWaiting.value = queue.waiting;
  };
  return new Map<string, StreamHandler>([
    [
      MaintenanceService.methods.Snapshot.path,
      (call) => {
        const caller = callerOf(call.context);
        const sending = new Sending(member, caller, call);
        // It may begin at once, so it must know its way out before.
        let leave: (() => void) | undefined;
        sending.onOver = () => {
          leave?.();
          count();
        };
        leave = queue.join(caller.client, () => sending.start());
        if (leave === undefined) throw errorOf("TooManyRequests");
        count();
        return sending;
      },
    ],
  ]);
}

/** Tag of SnapshotResponse's field `blob`: number 3, with a length. */
const BLOB_TAG = 0x1a;

/** A SnapshotResponse up to its blob, which is sent where it is: encoding copies it twice. */
function headOf(remainingBytes: number, blobBytes: number): Uint8Array {
  const before = SnapshotResponse.encode({ remainingBytes });
  const head = new Uint8Array(before.length + 1 + varintSize(blobBytes));
  head.set(before);
  head[before.length] = BLOB_TAG;
  putVarint(head, before.length + 1, blobBytes);
  return head;
}

class Sending implements StreamListener {
  readonly #member: Member;
  readonly #caller: Caller;
  readonly #call: StreamCall;
  /** Called once when it is over, be it that it never began. */
  onOver: () => void = () => {};
  readonly #paced: PacedCall;
  #isStarted = false;
  #sentBytes = 0;

  constructor(member: Member, caller: Caller, call: StreamCall) {
    this.#member = member;
    this.#caller = caller;
    this.#call = call;
    this.#paced = new PacedCall(call);
  }

  /** It is its turn. */
  start(): void {
    this.#isStarted = true;
    void this.#run().finally(() => this.#over());
  }

  message(bytes: Uint8Array): void {
    try {
      SnapshotRequest.decode(bytes);
    } catch (error) {
      this.cancelled();
      throw error;
    }
  }

  #over(): void {
    const over = this.onOver;
    this.onOver = () => {};
    over();
  }

  drained(): void {
    this.#paced.drained();
  }

  cancelled(): void {
    this.#paced.cancel();
    if (!this.#isStarted) this.#over();
  }

  /**
   * Ends the snapshot if the client takes too little of it: others wait, and what compaction would
   * give back is held.
   */
  #watchProgress(): Timer {
    let takenBytes = 0;
    return this.#member.clock.every(SNAPSHOT_STALL_MS, () => {
      const nowTakenBytes = this.#sentBytes - this.#call.bufferedBytes;
      const isStalled =
        this.#paced.isFull && nowTakenBytes - takenBytes < MIN_SNAPSHOT_PROGRESS_BYTES;
      takenBytes = nowTakenBytes;
      if (!isStalled || this.#paced.isCancelled) return;
      this.#member.metrics.snapshotStalls.add();
      const seconds = SNAPSHOT_STALL_MS / 1000;
      this.#member.logger.warn("ended a snapshot that its client does not take", {
        "remote-addr": this.#call.context.peerAddress,
        "taken-bytes": nowTakenBytes,
      });
      this.#call.end(
        new StatusError(
          GrpcCode.DeadlineExceeded,
          `etcdserver: snapshot made no progress for ${seconds} s`,
        ),
      );
      this.#paced.cancel();
    });
  }

  /** Sends all; never rejects. */
  async #run(): Promise<void> {
    const watched = this.#watchProgress();
    let snapshot: EtcdSnapshot | undefined;
    try {
      // The listener must be in its place before anything is sent.
      await Promise.resolve();
      snapshot = await this.#member.read(this.#caller, {
        access: { kind: "snapshot" },
        linearizable: false,
        run: () =>
          this.#member.store.etcdSnapshot(
            clusterVersionOf(SERVER_VERSION),
            () => !this.#paced.isCancelled,
          ),
      });
      this.#member.logger.info("sending database snapshot to client", {
        "total-bytes": snapshot.databaseBytes,
      });
      const startMs = this.#member.clock.monotonicMs();
      await this.#send(snapshot);
      if (this.#paced.isCancelled) return;
      this.#member.metrics.clientSnapshotDuration.observe(
        (this.#member.clock.monotonicMs() - startMs) / 1000,
      );
      this.#member.logger.info("successfully sent database snapshot to client", {
        "total-bytes": snapshot.databaseBytes,
      });
      this.#call.end();
    } catch (error) {
      this.#paced.fail(error);
    } finally {
      watched.cancel();
      // A store that was closed meanwhile has closed its views.
      await snapshot?.close().catch(() => {});
    }
  }

  async #send({ databaseBytes, storageVersion, chunks }: EtcdSnapshot): Promise<void> {
    let left = databaseBytes;
    const version = SnapshotResponse.encode({ version: storageVersion });
    for await (const chunk of chunks()) {
      const isChecksum = left === 0;
      for (let at = 0; at < chunk.length; at += MESSAGE_BYTES) {
        await this.#paced.hasSpace();
        if (this.#paced.isCancelled) return;
        const blob = chunk.subarray(at, at + MESSAGE_BYTES);
        if (!isChecksum) left -= blob.length;
        this.#sentBytes += blob.length;
        this.#paced.send([headOf(left, blob.length), blob, version]);
      }
    }
  }
}
