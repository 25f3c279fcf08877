/**
 * Copies the directory of a backup to an object store while a run writes it.
 *
 *     backup.json                      identity of the backup, equal to DIR/mirror.json
 *     base-REVISION-TIME.db            a base
 *     segment-NUMBER.qbk               a segment that is complete
 *     segment-NUMBER.qbk.OFFSET        bytes of the newest segment from that offset (16 hex digits)
 *                                      on; several, until it is complete
 *
 * Bytes of the newest segment are uploaded at each pass, so that a lost directory costs little more
 * than the time between passes. Pieces that have become many are joined into one. A file that the
 * run has pruned is removed here, too.
 */
import { type Clock, type Disk, DiskError } from "@quorate/host";
import { equals, fromUtf8, toUtf8 } from "@quorate/proto";
import { BackupError } from "./errors.ts";
import { parseBaseName, parseSegmentName } from "./format.ts";
import {
  type ObjectStore,
  ObjectStoreError,
  readObject,
  type StoredObject,
} from "./object-store.ts";

/** The object with the identity of a backup. */
export const IDENTITY_OBJECT = "backup.json";
/** The same in the directory. */
export const IDENTITY_FILE = "mirror.json";
/** Pieces of the newest segment before they are joined. */
const MAX_PIECES = 64;
const READ_BYTES = 1024 * 1024;

/** Bytes of the newest segment. */
export interface Piece {
  readonly name: string;
  readonly segment: string;
  readonly from: number;
  readonly to: number;
}

/** Parses the name of a piece; undefined for other objects. */
export function parsePiece(name: string, sizeBytes: number): Piece | undefined {
  const at = name.lastIndexOf(".");
  const [segment, offset] = [name.slice(0, at), name.slice(at + 1)];
  if (parseSegmentName(segment) === undefined || !/^[0-9a-f]{16}$/.test(offset)) return undefined;
  const from = Number.parseInt(offset, 16);
  return { name, segment, from, to: from + sizeBytes };
}

const pieceName = (segment: string, from: number): string =>
  `${segment}.${from.toString(16).padStart(16, "0")}`;

/**
 * The pieces that yield a segment from its begin on, in order, without those that others cover.
 * A piece behind a gap and all after it are left out.
 */
export function piecesInOrder(pieces: readonly Piece[]): Piece[] {
  const sorted = pieces.toSorted((a, b) => a.from - b.from || b.to - a.to);
  const used: Piece[] = [];
  let end = 0;
  for (const piece of sorted) {
    if (piece.from > end) break;
    if (piece.to <= end) continue;
    used.push(piece);
    end = piece.to;
  }
  return used;
}

export interface MirrorDeps {
  readonly disk: Disk;
  readonly store: ObjectStore;
  readonly clock: Pick<Clock, "wallMs">;
  /** Of a new backup: a text that no other has. */
  readonly identity: string;
  report(text: string): void;
  warn(text: string): void;
}

/** Begin it once, then one pass at a time. */
export class Mirror {
  readonly #deps: MirrorDeps;
  readonly #dir: string;
  /** Sizes of whole files in the store, by name. */
  readonly #whole = new Map<string, number>();
  readonly #pieces = new Map<string, Piece>();
  #uploadedBytes = 0;
  #passedMs = 0;
  #isBehind = false;
  #isRemovalRefused = false;

  constructor(deps: MirrorDeps, dir: string) {
    this.#deps = deps;
    this.#dir = dir;
  }

  /** Bytes uploaded so far. */
  get uploadedBytes(): number {
    return this.#uploadedBytes;
  }

  /** When a pass last ended well, by the wall clock in ms; 0 for never. */
  get passedMs(): number {
    return this.#passedMs;
  }

  /**
   * Reads what the store has. Rejects with BackupError where it has another backup, or none that is
   * this directory's; ObjectStoreError, DiskError.
   */
  async begin(): Promise<void> {
    const { disk, store } = this.#deps;
    const objects = await store.list();
    const file = `${this.#dir}/${IDENTITY_FILE}`;
    disk.makeDir(this.#dir);
    const isNamed = disk.stat(file) !== undefined;
    const identity = isNamed
      ? disk.readAll(file)
      : fromUtf8(`${JSON.stringify({ backup: this.#deps.identity })}\n`);
    const there = await readIdentity(store, objects);
    if (there !== undefined) {
      if (!equals(there, identity)) throw this.#refusal("has the backup of another directory");
    } else if (objects.length > 0) {
      throw this.#refusal(`has objects, such as ${objects[0]?.name}, and no ${IDENTITY_OBJECT}`);
    } else {
      await store.put(IDENTITY_OBJECT, identity.length, () => once(identity));
    }
    if (!isNamed) disk.replace(file, identity);
    for (const { name, sizeBytes } of objects) {
      const piece = parsePiece(name, sizeBytes);
      if (piece !== undefined) this.#pieces.set(name, piece);
      else if (isFileOfBackup(name)) this.#whole.set(name, sizeBytes);
    }
    this.#refuseToFallBehind();
  }

  /** A directory that was fetched from the store, and not this one, may have gone on. */
  #refuseToFallBehind(): void {
    const newest = newestSegment(this.#deps.disk.list(this.#dir));
    const there = newestSegment([
      ...this.#whole.keys(),
      ...[...this.#pieces.values()].map(({ segment }) => segment),
    ]);
    if (there !== undefined && there > (newest ?? ""))
      throw this.#refusal(`has ${there}, which ${this.#dir} does not have`);
  }

  #refusal(problem: string): BackupError {
    const advice =
      "use another prefix, or continue that backup: quorateutl backup fetch it into a new directory";
    return new BackupError("OtherHistory", this.#deps.store.place, `${problem}; ${advice}`);
  }

  /**
   * A pass beside a run. One that the store fails is reported once, until one ends well. Rejects
   * with BackupError, DiskError.
   */
  async keepUp(): Promise<void> {
    const { report, warn } = this.#deps;
    try {
      await this.pass(false);
      if (this.#isBehind) report("the mirror has caught up");
      this.#isBehind = false;
    } catch (error) {
      if (!(error instanceof ObjectStoreError)) throw error;
      if (!this.#isBehind) warn(`the mirror is behind: ${error.message}`);
      this.#isBehind = true;
    }
  }

  /**
   * Uploads what is new, and removes what the directory no longer has. Rejects with
   * ObjectStoreError, BackupError, DiskError.
   * @param isOver no run writes the newest segment any more
   */
  async pass(isOver: boolean): Promise<void> {
    const { disk } = this.#deps;
    const files = disk.list(this.#dir).filter(isFileOfBackup);
    const newest = isOver ? undefined : newestSegment(files);
    for (const name of files) {
      if (name === newest) await this.#uploadEnd(name);
      else await this.#uploadWhole(name);
    }
    await this.#removePruned(new Set(files));
    this.#passedMs = this.#deps.clock.wallMs();
  }

  async #uploadWhole(name: string): Promise<void> {
    const sizeBytes = this.#deps.disk.stat(`${this.#dir}/${name}`)?.sizeBytes;
    if (sizeBytes === undefined) return;
    if (this.#whole.get(name) !== sizeBytes) {
      if (!(await this.#put(name, name, 0, sizeBytes))) return;
      this.#whole.set(name, sizeBytes);
    }
    await this.#removePieces(name);
  }

  /** Uploads what the newest segment has gained. */
  async #uploadEnd(segment: string): Promise<void> {
    const sizeBytes = this.#deps.disk.stat(`${this.#dir}/${segment}`)?.sizeBytes ?? 0;
    const pieces = piecesInOrder(this.#piecesOf(segment));
    const end = pieces.at(-1)?.to ?? 0;
    if (sizeBytes <= end) return;
    const isJoined = pieces.length >= MAX_PIECES;
    const from = isJoined ? 0 : end;
    const name = pieceName(segment, from);
    if (!(await this.#put(name, segment, from, sizeBytes))) return;
    if (isJoined) await this.#removePieces(segment, name);
    this.#pieces.set(name, { name, segment, from, to: sizeBytes });
  }

  #piecesOf(segment: string): Piece[] {
    return [...this.#pieces.values()].filter((piece) => piece.segment === segment);
  }

  async #removePieces(segment: string, except?: string): Promise<void> {
    for (const { name } of this.#piecesOf(segment)) {
      if (name === except) continue;
      await this.#remove(name);
      this.#pieces.delete(name);
    }
  }

  /** False where the file was pruned meanwhile. */
  async #put(name: string, file: string, from: number, to: number): Promise<boolean> {
    const { disk, store } = this.#deps;
    const path = `${this.#dir}/${file}`;
    try {
      await store.put(name, to - from, () => fileBytes(disk, path, from, to));
    } catch (error) {
      if (error instanceof DiskError && error.code === "NotFound") return false;
      throw error;
    }
    this.#uploadedBytes += to - from;
    return true;
  }

  async #removePruned(files: ReadonlySet<string>): Promise<void> {
    for (const name of [...this.#whole.keys()]) {
      if (files.has(name)) continue;
      await this.#remove(name);
      this.#whole.delete(name);
    }
    for (const { name, segment } of [...this.#pieces.values()]) {
      if (files.has(segment)) continue;
      await this.#remove(name);
      this.#pieces.delete(name);
    }
  }

  /** An object that may not be removed yet (a lock, a role that only writes) stays. */
  async #remove(name: string): Promise<void> {
    try {
      await this.#deps.store.remove(name);
    } catch (error) {
      if (!(error instanceof ObjectStoreError) || error.code !== "Refused") throw error;
      if (this.#isRemovalRefused) return;
      this.#isRemovalRefused = true;
      this.#deps.warn(`old objects stay: ${error.message}`);
    }
  }
}

/**
 * The identity of the backup in a store; undefined for none. Rejects with ObjectStoreError.
 * @param objects what the store has
 */
export async function readIdentity(
  store: ObjectStore,
  objects: readonly StoredObject[],
): Promise<Uint8Array | undefined> {
  if (!objects.some(({ name }) => name === IDENTITY_OBJECT)) return undefined;
  const bytes = await readObject(store, IDENTITY_OBJECT);
  if (!toUtf8(bytes).startsWith('{"backup":')) {
    const problem = "it names no backup; one that is encrypted needs its key";
    throw new ObjectStoreError("Damaged", IDENTITY_OBJECT, problem);
  }
  return bytes;
}

/** Bases and segments: the files that are copied. */
export function isFileOfBackup(name: string): boolean {
  return parseBaseName(name) !== undefined || parseSegmentName(name) !== undefined;
}

/** The segment with the highest number, whose digits are as many in all names. */
function newestSegment(names: readonly string[]): string | undefined {
  return names
    .filter((name) => parseSegmentName(name) !== undefined)
    .sort()
    .at(-1);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function* fileBytes(
  disk: Disk,
  path: string,
  from: number,
  to: number,
): AsyncGenerator<Uint8Array> {
  const file = disk.open(path, "read");
  try {
    for (let at = from; at < to; ) {
      const chunk = new Uint8Array(Math.min(READ_BYTES, to - at));
      const length = await file.readLater(chunk, at);
      if (length === 0) throw new BackupError("Damaged", path, `it ends at ${at}, not at ${to}`);
      yield chunk.subarray(0, length);
      at += length;
    }
  } finally {
    file.close();
  }
}
