/**
 * What goes wrong with a member's disk, each fault exactly once and written down: so that when the
 * member ends, it can be seen whether this very fault made it end. A member that stops for a damage
 * that the simulator did not cause is a violation.
 */
import { DiskError, type DiskErrorCode, type Random } from "@quorate/host";
import type { DiskOperation, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/node";
import { defined, readU64BE, writeU64BE } from "@quorate/proto";
import { StoreDamageError } from "@quorate/store";
import { readWal, WalDamageError } from "@quorate/wal";

/**
 * How a log shows that sectors of it never reached the disk. No other reason is an excuse: a loss
 * leaves zeros or an earlier length, and the rolling checksum covers the order of the records.
 */
const LOSSES: ReadonlySet<string> = new Set([
  "the checksum does not match",
  "the length word makes no sense",
  "a length word of zero is followed by other bytes",
  "the record runs past the end of the file",
  "the file ends inside a length word",
  "the record cannot be decoded",
  "the padding is not zero",
  "the segment ends before its metadata",
  "the segment does not go on from the one before: the checksum differs",
]);
const MISSING_SEGMENT = /^segment \d+ is missing before it$/;
const SEGMENT = /\.wal$/;

/**
 * What syncs of a log that lied may have lost: which of the log's errors they explain, and for how
 * long.
 */
export class LiedSyncs {
  /** By segment: the first byte that a sync was to bring down and did not. */
  readonly #from = new Map<string, number>();
  #lostPower = false;

  /**
   * A sync of a file has lied. @param from the first byte that it left in the system's memory;
   * undefined if there was none
   */
  add(path: string, from: number | undefined): void {
    if (!SEGMENT.test(path) || from === undefined) return;
    this.#from.set(path, Math.min(from, this.#from.get(path) ?? Number.POSITIVE_INFINITY));
  }

  /** The machine loses power: what has not come down by now is lost. */
  lostPower(): void {
    this.#lostPower = true;
  }

  /** A member has read its log whole. What was not lost by then is on the disk. */
  wasRead(): void {
    if (this.#lostPower) this.#from.clear();
    this.#lostPower = false;
  }

  /**
   * Whether an error of the log is what a loss looks like, and where there was one: behind what was
   * on the disk before the first lie, or in a later segment, which continues what is lost.
   */
  explains({ path, offset, reason }: WalDamageError): boolean {
    // What a later durable mark says follows the reason itself.
    const [loss] = reason.split(", and byte ") as [string];
    if (!MISSING_SEGMENT.test(reason) && !LOSSES.has(loss)) return false;
    return [...this.#from].some(([lied, from]) => (path === lied ? offset >= from : path > lied));
  }
}

const SECTOR_BYTES = 512;
/** Causes of an error that are looked through. */
const MAX_CAUSES = 10;

/** A change of what was synced, done while no process used it. */
interface Damage {
  readonly path: string;
  /** The first and the last byte that differ; undefined for the store as a whole. */
  readonly from: number | undefined;
  readonly to: number | undefined;
}

/**
 * Records that are taken away or altered, by how their keys in the keyspace begin: the position in
 * the log, leases, and members of the cluster.
 */
const RECORDS = ["mconsistent_index", "mterm", "mconfState", "l", "M"] as const;

/** A stretch of the log that holds records, all of them synced. */
interface Stretch {
  readonly path: string;
  readonly from: number;
  readonly to: number;
}

export interface DiskFaultsDeps {
  readonly disk: MemoryDisk;
  readonly keyspaces: MemoryKeyspaceOpener;
  readonly random: Random;
  readonly walDir: string;
  readonly storePath: string;
  report(text: string): void;
}

export class DiskFaults {
  readonly #deps: DiskFaultsDeps;
  /** Errors that the disk made up for the present process. */
  #errors = new Set<unknown>();
  /** The store's writes fail, or failed, for the present process. */
  #storeFails: DiskErrorCode | undefined;
  readonly #damages: Damage[] = [];
  /** A sync of the log has ended well and brought nothing down. */
  hasLied = false;
  /** Its syncs lie from now on, whether or not there was one since. */
  isLying = false;
  /** What they may have lost. */
  readonly lied = new LiedSyncs();
  /** The store that lost a record. */
  #damagedDirectory: object | undefined;

  /** Called when a batch of a snapshot that comes in is about to be written. */
  receiving: () => void = () => {};

  constructor(deps: DiskFaultsDeps) {
    this.#deps = deps;
    this.heal();
  }

  /** What was synced has been changed at some time. */
  get isDamaged(): boolean {
    return this.#damages.length > 0 || this.hasLied;
  }

  /** Another process begins: what was done to the one before is no excuse for it. */
  begin(): void {
    this.isLying = false;
    this.#deps.disk.lies = undefined;
    this.#errors = new Set();
    this.#storeFails = undefined;
  }

  /** From now on the disk does as it should. */
  heal(): void {
    this.#deps.disk.fault = undefined;
    this.#deps.disk.lies = undefined;
    this.#deps.keyspaces.fault = ({ path }) => this.#write(path);
  }

  // --- Operations that fail ---

  /** After `count` operations of these kinds, they fail; for once, or from then on. */
  fail(
    code: DiskErrorCode,
    kinds: readonly DiskOperation["kind"][],
    count: number,
    times: number,
  ): void {
    let left = count;
    let more = times;
    this.#deps.disk.fault = ({ kind, path }) => {
      if (!kinds.includes(kind) || left-- > 0 || more-- <= 0) return undefined;
      this.#deps.report(`disk: ${code} at ${kind} of ${path}`);
      const error = new DiskError(code, path, `injected at ${kind}`);
      this.#errors.add(error);
      throw error;
    };
  }

  /**
   * The next sync of the log fails: what it covered is in the system's memory, and a later sync
   * does not bring it down.
   */
  failSync(): void {
    const { disk, report, walDir } = this.#deps;
    let isOver = false;
    disk.fault = ({ kind, path }) => {
      if (isOver || kind !== "sync" || !path.startsWith(walDir)) return undefined;
      isOver = true;
      report(`disk: Io at sync of ${path}`);
      const error = new DiskError("Io", path, "injected at sync");
      this.#errors.add(error);
      throw error;
    };
  }

  /** From now on syncs of the log lie, up to the end of the process. */
  lie(): void {
    const { disk, report, walDir } = this.#deps;
    this.isLying = true;
    disk.lies = (path, from) => {
      if (!path.startsWith(walDir)) return false;
      this.lied.add(path, from);
      if (!this.hasLied) report(`disk: the sync of ${path} lies`);
      this.hasLied = true;
      return true;
    };
  }

  /** Calls `crash` before the operation that follows `count` others. It has to throw. */
  crash(count: number, crash: (operation: string) => never): void {
    let left = count;
    this.#deps.disk.fault = ({ kind, path }) =>
      left-- > 0 ? undefined : crash(`${kind} of ${path}`);
  }

  /** The next write of the store fails. */
  failStore(code: DiskErrorCode): void {
    this.#deps.keyspaces.fault = ({ path }) => {
      if (path !== this.#deps.storePath) return this.#write(path);
      this.#deps.report(`store: ${code} at write`);
      this.#storeFails = code;
      return code;
    };
  }

  #write(path: string): undefined {
    if (path === this.#deps.storePath) return;
    try {
      this.receiving();
    } catch {
      // The process is gone, and what waits for this write with it.
    }
  }

  // --- Damage ---

  /** Changes something that was synced, while no process runs; false if there is nothing yet. */
  damage(): boolean {
    const { random } = this.#deps;
    const way = random.below(5);
    return way === 0 ? this.#damageStore() : way < 3 ? this.flipBit() : this.#loseSector();
  }

  /**
   * Takes a record of the store's position or of a lease away, or lowers the position; false if
   * there is none yet. No checksum of a file is wrong then.
   */
  damageRecord(): boolean {
    const { disk, keyspaces, random, storePath, report } = this.#deps;
    const prefix = RECORDS[random.below(RECORDS.length)];
    const values = keyspaces.values(storePath);
    const keys = [...(values?.keys() ?? [])].filter((key) => key.startsWith(prefix)).sort();
    if (keys.length === 0) return false;
    const key = keys[random.below(keys.length)];
    const index =
      prefix === "mconsistent_index" ? readU64BE(defined(values!.get(key), "the record")) : 0;
    const lower = index > 1 && random.below(2) === 0 ? new Uint8Array(8) : undefined;
    if (lower !== undefined) writeU64BE(lower, index - 1 - random.below(Math.min(3, index - 1)));
    keyspaces.alter(storePath, key, lower);
    report(`the store's record ${key.slice(0, 20)} is ${lower === undefined ? "lost" : "altered"}`);
    this.#damages.push({ path: storePath, from: undefined, to: undefined });
    this.#damagedDirectory = disk.directory(storePath);
    return true;
  }

  /** Whether the store at its place is one that a record was lost of. */
  get hasDamagedRecord(): boolean {
    const { disk, storePath } = this.#deps;
    return (
      this.#damagedDirectory !== undefined && disk.directory(storePath) === this.#damagedDirectory
    );
  }

  #damageStore(): boolean {
    const { keyspaces, storePath, report } = this.#deps;
    try {
      keyspaces.damage(storePath);
    } catch {
      // There is none yet.
      return false;
    }
    report(`the store in ${storePath} is damaged`);
    this.#damages.push({ path: storePath, from: undefined, to: undefined });
    return true;
  }

  /**
   * The records of the log, each a stretch: those that a durable mark vouches for, as the log
   * itself has it; those of the tail behind the last mark; or all.
   */
  #records(which: "marked" | "tail" | "anywhere" = "marked"): Stretch[] {
    const { disk, walDir } = this.#deps;
    const records: Stretch[] = [];
    // This is no operation of a process that runs.
    const { fault } = disk;
    disk.fault = undefined;
    try {
      const reader = readWal(disk, walDir);
      let step = reader.next();
      let last: { path: string; from: number } | undefined;
      while (step.done !== true) {
        const path = `${walDir}/${step.value.segment.name}`;
        if (last !== undefined)
          records.push({ ...last, to: last.path === path ? step.value.offset : last.from + 16 });
        last = { path, from: step.value.offset };
        step = reader.next();
      }
      const { segments, durableBytes, offset } = step.value;
      const tail = `${walDir}/${segments[segments.length - 1].name}`;
      if (last !== undefined && last.path === tail) records.push({ ...last, to: offset });
      return records.filter(({ path, to }) => {
        if (which === "anywhere") return true;
        const isMarked = path !== tail || to <= durableBytes;
        return which === "marked" ? isMarked : !isMarked;
      });
    } catch {
      // No log yet, or none that can be read any more.
      return [];
    } finally {
      disk.fault = fault;
    }
  }

  /** Flips a bit of the log; false if there is nothing yet. @param where as for `#records` */
  flipBit(where: "marked" | "tail" | "anywhere" = "marked"): boolean {
    const { disk, random, report } = this.#deps;
    const records = this.#records(where);
    if (records.length === 0) return false;
    const { path, from, to } = records[random.below(records.length)];
    const position = from + random.below(to - from);
    disk.corrupt(path, position, 1 << random.below(8));
    report(`a bit flips in ${path} at ${position}`);
    // A checksum that opens the log is found wrong only at the record behind it.
    this.#damages.push({ path, from: position, to: from === 0 ? to : position });
    return true;
  }

  /** A sector of the log reads as zeros, as if it had never been written. */
  #loseSector(): boolean {
    const { disk, random, report } = this.#deps;
    const records = this.#records();
    const record = records.length === 0 ? undefined : records[random.below(records.length)];
    if (record === undefined) return false;
    const from = record.from - (record.from % SECTOR_BYTES);
    const synced = records.reduce(
      (end, { path, to }) => (path === record.path ? Math.max(end, to) : end),
      0,
    );
    const to = Math.min(from + SECTOR_BYTES, synced);
    const bytes = disk.readAll(record.path).subarray(from, to);
    if (bytes.every((byte) => byte === 0)) return false;
    bytes.forEach((byte, i) => {
      if (byte !== 0) disk.corrupt(record.path, from + i, byte);
    });
    report(`the sector of ${record.path} at ${from} is lost`);
    this.#damages.push({ path: record.path, from, to: to - 1 });
    return true;
  }

  // --- Reasons of ends ---

  /**
   * Why a member ended by `error`: a fault of its disk, a damage done to it, or undefined: for a
   * reason of its own.
   */
  reasonOf(error: unknown): "fault" | "damage" | undefined {
    let at: Error | undefined = error instanceof Error ? error : undefined;
    for (let i = 0; at !== undefined && i < MAX_CAUSES; i++) {
      if (this.#errors.has(at)) return "fault";
      const current = at;
      if (current instanceof DiskError && current.path === this.#deps.storePath) {
        if (current.code === this.#storeFails) return "fault";
        if (current.code === "Damaged" && this.#damages.some(({ path }) => path === current.path))
          return "damage";
      }
      if (at instanceof WalDamageError && (this.lied.explains(at) || this.#isDone(at)))
        return "damage";
      if (at instanceof StoreDamageError && this.hasDamagedRecord) return "damage";
      at = at.cause instanceof Error ? at.cause : undefined;
    }
    return undefined;
  }

  /**
   * A log is damaged where the simulator damaged it: the broken record begins at the damage or
   * before it.
   */
  #isDone({ path, offset }: WalDamageError): boolean {
    return this.#damages.some(
      (damage) => damage.path === path && damage.to !== undefined && offset <= damage.to,
    );
  }
}
