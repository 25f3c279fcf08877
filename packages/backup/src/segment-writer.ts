/**
 * Writes a segment: records are appended and durable after `sync`; the first one after a sync is
 * preceded by a "synced" record. Do not use it after a failure; the next run cuts off broken
 * records.
 */
import type { Disk, DiskFile } from "@quorate/host";
import { fromUtf8 } from "@quorate/proto";
import { type BackupRecord, encodeRecord, MAGIC, segmentName } from "./format.ts";

/** The size at which the next segment begins. */
export const MAX_SEGMENT_BYTES = 64 * 1024 * 1024;

export class SegmentWriter {
  readonly path: string;
  readonly number: number;
  readonly #file: DiskFile;
  #offset: number;
  #durable: number;
  /** The offset that the last "synced" record covers. */
  #marked = 0;
  #timeMs: number;

  private constructor(file: DiskFile, number: number, offset: number, timeMs: number) {
    this.#file = file;
    this.path = file.path;
    this.number = number;
    this.#offset = offset;
    this.#durable = offset;
    this.#timeMs = timeMs;
  }

  /** Creates the segment with its head; both are durable when it returns. @throws DiskError */
  static create(
    disk: Disk,
    dir: string,
    number: number,
    head: BackupRecord & { kind: "head" },
  ): SegmentWriter {
    const file = disk.open(`${dir}/${segmentName(number)}`, "create");
    try {
      const chunks = [fromUtf8(MAGIC), encodeRecord(head)];
      file.write(chunks, 0);
      file.dataSyncNow();
      disk.syncDir(dir);
      return new SegmentWriter(
        file,
        number,
        chunks.reduce((sum, chunk) => sum + chunk.length, 0),
        head.timeMs,
      );
    } catch (error) {
      file.close();
      throw error;
    }
  }

  get sizeBytes(): number {
    return this.#offset;
  }

  get isFull(): boolean {
    return this.#offset >= MAX_SEGMENT_BYTES;
  }

  /** Whether all appended records are durable. */
  get isDurable(): boolean {
    return this.#durable === this.#offset;
  }

  /** Appends a record; durable after `sync`. @throws DiskError */
  append(record: BackupRecord): void {
    this.#write([...this.#mark(), encodeRecord(record)]);
    this.#timeMs = record.timeMs;
  }

  /** The "synced" record, if one is due. */
  #mark(): Uint8Array[] {
    return this.#marked === this.#durable
      ? []
      : [encodeRecord({ kind: "synced", timeMs: this.#timeMs, offset: this.#durable })];
  }

  #write(chunks: readonly Uint8Array[]): void {
    const marked = this.#durable;
    this.#file.write(chunks, this.#offset);
    for (const { length } of chunks) this.#offset += length;
    this.#marked = marked;
  }

  /**
   * Makes all records appended before the call durable. One call at a time. Rejects with DiskError.
   */
  async sync(): Promise<void> {
    const offset = this.#offset;
    if (offset === this.#durable) return;
    await this.#file.dataSync();
    this.#durable = offset;
  }

  /**
   * Closes the segment, with a last "synced" record if all records are durable. @throws DiskError
   */
  close(): void {
    try {
      if (this.isDurable) this.#write(this.#mark());
    } finally {
      this.#file.close();
    }
  }
}
