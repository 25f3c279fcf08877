/** Writing a segment: records behind each other, durable after `sync`. A failure ends its use; the next run cuts off what is broken. */
import type { Disk, DiskFile } from "@quorate/host";
import { fromUtf8 } from "@quorate/proto";
import { type BackupRecord, encodeRecord, MAGIC, segmentName } from "./format.ts";

/** A segment is left for the next when it has grown to this. */
export const MAX_SEGMENT_BYTES = 64 * 1024 * 1024;

export class SegmentWriter {
  readonly path: string;
  readonly number: number;
  readonly #file: DiskFile;
  #offset: number;
  #durable: number;

  private constructor(file: DiskFile, number: number, offset: number) {
    this.#file = file;
    this.path = file.path;
    this.number = number;
    this.#offset = offset;
    this.#durable = 0;
  }

  /** Makes the segment with its head; both are durable when it returns. @throws DiskError */
  static create(disk: Disk, dir: string, number: number, head: BackupRecord & { kind: "head" }): SegmentWriter {
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

  /** Appends a record; durable after `sync`. @throws DiskError */
  append(record: BackupRecord): void {
    const bytes = encodeRecord(record);
    this.#file.write([bytes], this.#offset);
    this.#offset += bytes.length;
  }

  /** Makes durable what was appended before the call; one at a time. Rejects with DiskError. */
  async sync(): Promise<void> {
    const offset = this.#offset;
    if (offset === this.#durable) return;
    await this.#file.dataSync();
    this.#durable = offset;
  }

  close(): void {
    this.#file.close();
  }
}
