/** A snapshot for a client, read to its end and thrown away. */
import { MaintenanceService, SnapshotRequest, SnapshotResponse } from "@quorate/proto";
import type { ClientIdentity } from "../../scripts/cluster/health.ts";
import { openChannel } from "../../test/support/client.ts";

/**
 * Takes a snapshot of the member at host:port; returns its size in bytes. Rejects with the status
 * that ended it, or after `limitMs`.
 */
export function takeSnapshot(
  address: string,
  identity: ClientIdentity,
  limitMs: number,
): Promise<number> {
  const channel = openChannel(address, identity);
  return new Promise<number>((resolve, reject) => {
    let sizeBytes = 0;
    const stream = channel.makeServerStreamRequest(
      MaintenanceService.methods.Snapshot.path,
      (bytes: Buffer) => bytes,
      (bytes) => SnapshotResponse.decode(bytes).blob.length,
      Buffer.from(SnapshotRequest.encode({})),
      { deadline: Date.now() + limitMs },
    );
    stream.on("data", (length: number) => {
      sizeBytes += length;
    });
    stream.on("end", () => resolve(sizeBytes));
    stream.on("error", reject);
  }).finally(() => channel.close());
}
