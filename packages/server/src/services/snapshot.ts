/**
 * Maintenance.Snapshot: the store as etcd's snapshot file, in messages of 32 KiB, the SHA-256 in one of its own at the end (etcd:
 * api/v3rpc/maintenance.go). The member goes on serving; a slow reader holds back the reading of the store, so that no more than one slice
 * of it waits in memory.
 */
import { errorOf, MaintenanceService, SnapshotRequest, SnapshotResponse } from "@quorate/proto";
import type { StreamCall, StreamHandler, StreamListener } from "@quorate/rpc";
import type { EtcdSnapshot } from "@quorate/store";
import type { Member } from "../member/member.ts";
import { clusterVersionOf, SERVER_VERSION } from "../version.ts";
import { toStatusError } from "./status.ts";

/** As in etcd. */
const MESSAGE_BYTES = 32 * 1024;
/** Snapshots that are sent at once: each holds what compaction would give back. More are refused. */
export const MAX_CLIENT_SNAPSHOTS = 8;

/** The handlers of the service's stream, by path. */
export function snapshotStreams(member: Member): ReadonlyMap<string, StreamHandler> {
  let underWay = 0;
  return new Map<string, StreamHandler>([
    [
      MaintenanceService.methods.Snapshot.path,
      (call) => {
        if (underWay >= MAX_CLIENT_SNAPSHOTS) throw errorOf("TooManyRequests");
        underWay++;
        const sending = new Sending(member, call);
        void sending.run().finally(() => underWay--);
        return sending;
      },
    ],
  ]);
}

class Sending implements StreamListener {
  readonly #member: Member;
  readonly #call: StreamCall;
  #isCancelled = false;
  #isFull = false;
  #wake: (() => void) | undefined;

  constructor(member: Member, call: StreamCall) {
    this.#member = member;
    this.#call = call;
  }

  message(bytes: Uint8Array): void {
    try {
      SnapshotRequest.decode(bytes);
    } catch (error) {
      this.cancelled();
      throw error;
    }
  }

  drained(): void {
    this.#isFull = false;
    this.#wake?.();
  }

  cancelled(): void {
    this.#isCancelled = true;
    this.#wake?.();
  }

  /** Sends all; never rejects. */
  async run(): Promise<void> {
    let snapshot: EtcdSnapshot | undefined;
    try {
      // The listener must be in its place before anything is sent.
      await this.#member.servable();
      snapshot = await this.#member.store.etcdSnapshot(clusterVersionOf(SERVER_VERSION), () => !this.#isCancelled);
      this.#member.logger.info("sending database snapshot to client", { "total-bytes": snapshot.databaseBytes });
      const startMs = this.#member.clock.monotonicMs();
      await this.#send(snapshot);
      if (this.#isCancelled) return;
      this.#member.metrics.clientSnapshotDuration.observe((this.#member.clock.monotonicMs() - startMs) / 1000);
      this.#member.logger.info("successfully sent database snapshot to client", { "total-bytes": snapshot.databaseBytes });
      this.#call.end();
    } catch (error) {
      if (!this.#isCancelled) this.#call.end(toStatusError(error));
    } finally {
      // A store that was closed meanwhile has closed its views.
      await snapshot?.close().catch(() => {});
    }
  }

  async #send({ databaseBytes, storageVersion, chunks }: EtcdSnapshot): Promise<void> {
    let left = databaseBytes;
    for await (const chunk of chunks()) {
      const isChecksum = left === 0;
      for (let at = 0; at < chunk.length; at += MESSAGE_BYTES) {
        while (this.#isFull && !this.#isCancelled) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        if (this.#isCancelled) return;
        const blob = chunk.subarray(at, at + MESSAGE_BYTES);
        if (!isChecksum) left -= blob.length;
        this.#isFull = !this.#call.send(
          SnapshotResponse.encode({ header: undefined, remainingBytes: left, blob, version: storageVersion }),
        );
      }
    }
  }
}
