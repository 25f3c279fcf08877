/**
 * What is done to members' disks. A slow one: each fdatasync takes longer (disk-faults.ts, loaded
 * into the member's process). A full one: where this machine lets us mount, the member's data lies
 * on a tmpfs of its own, whose limit is set to what is used; elsewhere the writes of the member's
 * files fail as they do on a full disk.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * The small disk: a log and a store of several rounds, and a received snapshot beside it, fit.
 */
const DISK_BYTES = 1_500_000_000;
/** What a filled disk may still take. */
const SLACK_BYTES = 4096;
const FILL_ATTEMPTS = 50;

/** What disk-faults.ts does in a member's process. */
export interface DiskFaults {
  readonly syncDelayMs: number;
  readonly isFull: boolean;
}

const NO_FAULTS: DiskFaults = { syncDelayMs: 0, isFull: false };

/**
 * True if this process may mount file systems that end with it (main.ts puts it into a mount
 * namespace of its own).
 */
export const canMount: boolean = process.env["QUORATE_ROBUSTNESS_MOUNTS"] === "1";

export class MemberDisk {
  readonly #dir: string;
  readonly #controlFile: string;
  readonly #isMounted: boolean;
  #faults = NO_FAULTS;
  /** True while it is full, and until the member was started again afterwards. */
  wasFull = false;

  /** `isSmall`: on a file system of its own, if that can be. */
  constructor(dir: string, controlFile: string, isSmall: boolean) {
    this.#dir = dir;
    this.#controlFile = controlFile;
    this.#isMounted = isSmall && canMount;
    this.#control(NO_FAULTS);
    if (!this.#isMounted) return;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES},mode=700`, "tmpfs", dir]);
  }

  /** Variables for the member's process. */
  get env(): Record<string, string> {
    const preload = pathToFileURL(join(import.meta.dirname, "disk-faults.ts")).href;
    return { NODE_OPTIONS: `--import=${preload}`, QUORATE_TEST_DISK_FAULTS: this.#controlFile };
  }

  /** How it is filled, for the report. */
  get kind(): string {
    return this.#isMounted ? "tmpfs" : "failing writes";
  }

  slow(syncDelayMs: number): void {
    this.#control({ ...this.#faults, syncDelayMs });
  }

  /** From now on nothing more can be written, but for a few pages. */
  fill(): void {
    this.wasFull = true;
    if (!this.#isMounted) {
      this.#control({ ...this.#faults, isFull: true });
      return;
    }
    for (let attempt = 1; ; attempt++) {
      const { bsize, blocks, bfree } = statfsSync(this.#dir);
      try {
        this.#remount((blocks - bfree) * bsize + SLACK_BYTES);
        return;
      } catch (error) {
        // The member wrote meanwhile.
        if (attempt === FILL_ATTEMPTS) throw error;
      }
    }
  }

  /** Frees the space. */
  free(): void {
    if (this.#isMounted) this.#remount(DISK_BYTES);
    else this.#control({ ...this.#faults, isFull: false });
  }

  #remount(sizeBytes: number): void {
    execFileSync("mount", ["-o", `remount,size=${sizeBytes}`, this.#dir], {
      stdio: ["ignore", "ignore", "pipe"],
    });
  }

  #control(faults: DiskFaults): void {
    this.#faults = faults;
    writeFileSync(this.#controlFile, JSON.stringify(faults));
  }

  /**
   * Copies what would go with the mount to a directory beside it, for the analysis of a violation.
   */
  keep(): void {
    if (this.#isMounted) cpSync(this.#dir, `${this.#dir}-kept`, { recursive: true });
  }

  close(): void {
    if (this.#isMounted) execFileSync("umount", ["--lazy", this.#dir]);
  }
}
