/**
 * Measures synced writes in a local directory, as a member's log makes them.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { DiskProbe } from "./view.ts";

/** The size of a small batch of entries. */
const WRITE_BYTES = 4096;
const SYNCS = 200;
/** Longest duration of the measurement. */
const LIMIT_NS = 3_000_000_000n;

/**
 * Writes to a temporary file. Throws the system's error if the directory is not writable.
 */
export function probeDisk(path: string, nowNs: () => bigint): DiskProbe {
  const dir = mkdtempSync(join(path, "quorate-probe-"));
  const tookMs: number[] = [];
  try {
    const file = openSync(join(dir, "probe"), "w", 0o600);
    try {
      const bytes = new Uint8Array(WRITE_BYTES);
      const startNs = nowNs();
      while (tookMs.length < SYNCS && nowNs() - startNs < LIMIT_NS) {
        const beginNs = nowNs();
        writeSync(file, bytes);
        fdatasyncSync(file);
        tookMs.push(Number(nowNs() - beginNs) / 1e6);
      }
    } finally {
      closeSync(file);
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  tookMs.sort((a, b) => a - b);
  const at = (share: number): number =>
    tookMs[Math.min(tookMs.length - 1, Math.floor(share * tookMs.length))];
  return { path, p50Ms: at(0.5), p99Ms: at(0.99), syncs: tookMs.length };
}
