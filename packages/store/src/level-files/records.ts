/**
 * All records of a range of an open LevelDB's keys, from the files of its tables: the runs of its
 * levels, merged.
 *
 *     level 0   each table is a run of its own, newer ones over older ones
 *     level 1+  the tables of a level are one run
 *
 * Of the changes of one key the newest counts, and a deletion leaves none. The tables must hold all
 * of the keyspace: nothing may be in LevelDB's own log alone.
 */
import { type Disk, DiskError } from "@quorate/host";
import { defined, toLatin1 } from "@quorate/proto";
import { BytesDamage } from "./bytes.ts";
import { type LiveTable, liveTables, tablePath } from "./manifest.ts";
import { compareUserKeys, MARK_BYTES, type OpenTable, TableRun } from "./table-run.ts";

/** More tables than this are not opened at once: 32 GiB of them. */
export const MAX_OPEN_TABLES = 4096;
/** A compaction may replace tables between reading their list and opening them. */
const MAX_ATTEMPTS = 5;
const VALUE = 1;

/** A range of keys: from `from` (included) to `to` (excluded). */
export interface TableRange {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/** Opens the tables of a range; undefined where they cannot be read in place. @throws DiskError */
export type OpenFiles = () => TableFiles | undefined;

/** The open tables of a range, whose records can be read any number of times. */
export class TableFiles {
  readonly #runs: readonly (readonly OpenTable[])[];
  readonly #range: TableRange;

  constructor(runs: readonly (readonly OpenTable[])[], range: TableRange) {
    this.#runs = runs;
    this.#range = range;
  }

  /** The records from the first one on. */
  records(): TableRecords {
    return new TableRecords(this.#runs, this.#range);
  }

  /** Closes the files. */
  close(): void {
    for (const { file } of this.#runs.flat()) file.close();
  }
}

/** Reads the records of a range in key order. */
export class TableRecords {
  readonly #from: Uint8Array;
  readonly #to: Uint8Array;
  #runs: TableRun[];
  #current: TableRun | undefined;
  /** The run with the least key beside the current one. */
  #next: TableRun | undefined;
  #waits: TableRun | undefined;
  /** The key before, of which older changes may follow. */
  #last: Uint8Array = new Uint8Array(256);
  #lastLength = -1;
  #isBegun = false;

  constructor(runs: readonly (readonly OpenTable[])[], { from, to }: TableRange) {
    this.#runs = runs.map((tables) => new TableRun(tables, from));
    this.#to = to;
    this.#from = from;
  }

  /** The run that has the present record: its key without the mark, and its value. */
  get record(): TableRun {
    return defined(this.#current, "the present record");
  }

  /** Bytes of the present record's key. */
  get keyLength(): number {
    return this.record.keyLength - MARK_BYTES;
  }

  /** Goes to the next record; false if `refill` has to be called first. @throws BytesDamage */
  next(): boolean {
    if (this.#waits !== undefined || !this.#isBegun) return false;
    for (;;) {
      let current = this.#current;
      if (current === undefined) return false;
      if (current.isUsed && !current.advance()) {
        if (!current.isDone) {
          this.#waits = current;
          return false;
        }
        this.#drop(current);
        continue;
      }
      if (this.#next !== undefined && compareRecords(current, this.#next) > 0) {
        this.#choose();
        current = this.record;
      }
      current.isUsed = true;
      const length = current.keyLength - MARK_BYTES;
      if (this.#isLast(current.key, length)) continue;
      this.#keepLast(current.key, length);
      if (current.key[length] !== VALUE) continue;
      if (compareUserKeys(current.key, length, this.#from, this.#from.length) < 0) continue;
      if (compareUserKeys(current.key, length, this.#to, this.#to.length) < 0) return true;
      // All that follows is behind the range.
      this.#runs = [];
      this.#current = undefined;
      return false;
    }
  }

  /** Reads what `next` waits for; false at the end of the range. @throws DiskError, BytesDamage */
  async refill(): Promise<boolean> {
    if (!this.#isBegun) {
      for (const run of this.#runs) await this.#begin(run);
      this.#runs = this.#runs.filter((run) => !run.isDone);
      this.#isBegun = true;
      this.#choose();
    } else if (this.#waits !== undefined) {
      const run = this.#waits;
      await run.refill();
      this.#waits = undefined;
      if (run.isDone) this.#drop(run);
    }
    return this.#current !== undefined;
  }

  async #begin(run: TableRun): Promise<void> {
    do {
      await run.refill();
      if (run.isDone || run.advance()) return;
    } while (!run.isDone);
  }

  #drop(run: TableRun): void {
    this.#runs = this.#runs.filter((one) => one !== run);
    this.#choose();
  }

  /** Finds the runs with the least two keys. All but the current one have a record at hand. */
  #choose(): void {
    let least: TableRun | undefined;
    let second: TableRun | undefined;
    for (const run of this.#runs) {
      if (least === undefined || compareRecords(run, least) < 0) {
        second = least;
        least = run;
      } else if (second === undefined || compareRecords(run, second) < 0) second = run;
    }
    this.#current = least;
    this.#next = second;
  }

  #isLast(key: Uint8Array, length: number): boolean {
    if (length !== this.#lastLength) return false;
    // From the end, where keys that follow each other differ.
    for (let i = length - 1; i >= 0; i--) if (key[i] !== this.#last[i]) return false;
    return true;
  }

  #keepLast(key: Uint8Array, length: number): void {
    if (length > this.#last.length) this.#last = new Uint8Array(2 * length);
    const last = this.#last;
    for (let i = 0; i < length; i++) last[i] = key[i];
    this.#lastLength = length;
  }
}

/** LevelDB's order: by the user's key, the newest change first. */
function compareRecords(a: TableRun, b: TableRun): number {
  const aLength = a.keyLength - MARK_BYTES;
  const bLength = b.keyLength - MARK_BYTES;
  const keys = compareUserKeys(a.key, aLength, b.key, bLength);
  if (keys !== 0) return keys;
  for (let i = MARK_BYTES - 1; i >= 0; i--) {
    const difference = b.key[bLength + i] - a.key[aLength + i];
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * Opens all tables of the LevelDB in `directory` that may have keys of the range. Undefined where
 * there is no LevelDB, or the files cannot be opened together: then the records are read through
 * the binding. The caller closes the result. @throws DiskError
 */
export function openTables(
  disk: Disk,
  directory: string,
  range: TableRange,
): TableFiles | undefined {
  if (disk.stat(`${directory}/CURRENT`) === undefined) return undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const runs = openRuns(disk, directory, range);
    if (runs === "too many") return undefined;
    if (runs !== "replaced") return new TableFiles(runs, range);
  }
  return undefined;
}

function openRuns(
  disk: Disk,
  directory: string,
  { from, to }: TableRange,
): OpenTable[][] | "replaced" | "too many" {
  const opened: OpenTable[] = [];
  try {
    const name = toLatin1(disk.readAll(`${directory}/CURRENT`)).replace(/\n$/, "");
    const tables = [...liveTables(disk.readAll(`${directory}/${name}`))].filter(
      ([, { smallest, largest }]) =>
        compareUserKeys(largest, largest.length, from, from.length) >= 0 &&
        compareUserKeys(smallest, smallest.length, to, to.length) < 0,
    );
    if (tables.length > MAX_OPEN_TABLES) return "too many";
    return runsOf(tables).map((run) =>
      run.map(([number, { sizeBytes, smallest }]) => {
        const path = tablePath(directory, number);
        const isWithin = compareUserKeys(smallest, smallest.length, from, from.length) >= 0;
        const table = { file: disk.open(path, "read"), sizeBytes, isWithin };
        opened.push(table);
        return table;
      }),
    );
  } catch (error) {
    for (const { file } of opened) file.close();
    if (error instanceof DiskError && error.code === "NotFound") return "replaced";
    if (error instanceof DiskError && error.code === "Io") return "too many";
    // A change that is being written to the list may be seen in part.
    if (error instanceof BytesDamage) return "replaced";
    throw error;
  }
}

type NumberedTable = readonly [number: number, table: LiveTable];

/** The tables of level 0 by themselves, those of each other level in the order of their keys. */
function runsOf(tables: readonly NumberedTable[]): NumberedTable[][] {
  const levels = new Map<number, NumberedTable[]>();
  const runs: NumberedTable[][] = [];
  for (const table of tables) {
    const { level } = table[1];
    if (level === 0) runs.push([table]);
    else levels.set(level, [...(levels.get(level) ?? []), table]);
  }
  for (const level of levels.values())
    runs.push(
      level.sort(([, a], [, b]) =>
        compareUserKeys(a.smallest, a.smallest.length, b.smallest, b.smallest.length),
      ),
    );
  return runs;
}
