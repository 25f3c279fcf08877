/**
 * A client that takes snapshots of members while all else goes on, slowly or fast; each that came
 * to its end is looked into.
 */
import { MaintenanceService, SnapshotRequest, SnapshotResponse } from "@quorate/proto";
import { Actor, type ActorDeps } from "./base/actor.ts";
import type { Archive, ArchiveCheck } from "./check/archives.ts";
import { ENDED_BY_SERVER } from "./exchanges.ts";
import type { Node } from "./node.ts";

const { path: PATH } = MaintenanceService.methods.Snapshot;
/** A snapshot that takes longer is given up. */
const MAX_MS = 15_000;

export interface ArchivistDeps extends ActorDeps {
  readonly archives: ArchiveCheck;
}

export class Archivist extends Actor<ArchivistDeps> {
  /** The last one that was sound. */
  last: Archive | undefined;

  start(): void {
    if (this.options.archiveEveryMs > 0)
      this.#work().catch((error: unknown) => this.deps.fail(error));
  }

  async #work(): Promise<void> {
    const { scheduler, nodes, random, archives, story } = this.deps;
    while (!this.isStopped) {
      await scheduler.delay(2 * random.unit() * this.options.archiveEveryMs);
      if (this.isStopped) return;
      const node = nodes[random.below(nodes.length)];
      const { isAltered, timesAltered } = node;
      const bytes = await this.#take(node);
      story.record(
        "archivist",
        `has of ${node.name} ${bytes === undefined ? "no snapshot" : `a snapshot of ${bytes.length} bytes`}`,
        bytes,
      );
      if (bytes === undefined) archives.counts.broken++;
      else if (!isAltered && node.timesAltered === timesAltered)
        this.last = (await archives.look(node.name, bytes)) ?? this.last;
    }
  }

  /** A whole snapshot; undefined if it broke off. */
  #take(node: Node): Promise<Uint8Array | undefined> {
    const { network, scheduler, random, story } = this.deps;
    const pieces: Uint8Array[] = [];
    story.record("archivist", `asks ${node.name} for a snapshot`);
    return new Promise((resolve) => {
      const listener = {
        message: (bytes: Uint8Array) =>
          void pieces.push(SnapshotResponse.decode(bytes).blob.slice()),
        ended(reason: string) {
          timer.cancel();
          resolve(reason === ENDED_BY_SERVER ? Buffer.concat(pieces) : undefined);
        },
      };
      const stream = network.open(node, PATH, listener, {
        readMs: [0, 0, 5, 200][random.below(4)],
        budgetBytes: 2000,
      });
      stream.send(SnapshotRequest.encode({}));
      const timer = scheduler.after(MAX_MS, () => {
        stream.close();
        resolve(undefined);
      });
    });
  }
}
