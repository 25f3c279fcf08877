/** Metrics of a backup, as a file for node_exporter's textfile collector. */
import { writeWholeFile } from "@quorate/host/node";
import { MetricRegistry } from "@quorate/metrics";
import { prometheusExposition } from "@quorate/metrics/node";
import type { Mirror } from "../src/mirror.ts";
import type { BackupStatus } from "./recorder.ts";

/**
 * Replaces the file. Rejects with Node's errors, which name the path.
 * @param path "" for none
 * @param mirror absent for a backup without one
 */
export async function writeBackupMetrics(
  path: string,
  { revision, recordedMs, baseMs }: BackupStatus,
  mirror?: Pick<Mirror, "passedMs" | "uploadedBytes">,
): Promise<void> {
  if (path === "") return;
  const registry = new MetricRegistry();
  const set = (name: string, help: string, value: number): void => {
    registry.gauge(`quorate_backup_${name}`, help).value = value;
  };
  set("revision", "The last recorded revision.", revision);
  set(
    "recorded_timestamp_seconds",
    "All changes up to this time are recorded, in seconds since 1970.",
    recordedMs / 1000,
  );
  set(
    "base_timestamp_seconds",
    "When the newest base snapshot was taken, in seconds since 1970.",
    baseMs / 1000,
  );
  if (mirror !== undefined) {
    set(
      "mirror_timestamp_seconds",
      "When the object store last had all of the backup, in seconds since 1970.",
      mirror.passedMs / 1000,
    );
    registry.counter(
      "quorate_backup_mirror_uploaded_bytes_total",
      "Bytes uploaded to the object store.",
    ).value = mirror.uploadedBytes;
  }
  const text = await prometheusExposition(registry).text();
  writeWholeFile(path, text, 0o644);
}
