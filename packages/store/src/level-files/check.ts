/** Verifies the checksums of all tables of a LevelDB that no process has open. */
import { type Disk, DiskError } from "@quorate/host";
import { defined, toLatin1 } from "@quorate/proto";
import { BytesDamage } from "./bytes.ts";
import { liveTables } from "./manifest.ts";
import { checkTable } from "./table.ts";

const ADVICE =
  "the member does not start rather than serve wrong data: remove it from the cluster, move its data directory away, and add it again, " +
  "or restore a backup";

/** The amount that was verified. */
export interface CheckedTables {
  readonly tables: number;
  readonly blocks: number;
  readonly bytes: number;
}

/**
 * Verifies the checksums of the tables of the LevelDB in `directory`, which no process has open.
 * Rejects with a DiskError "Damaged" with the file and the offset of the first damaged block;
 * ignores files that are not part of the database.
 */
export async function checkLevelFiles(disk: Disk, directory: string): Promise<CheckedTables> {
  const current = `${directory}/CURRENT`;
  const name = toLatin1(disk.readAll(current)).replace(/\n$/, "");
  if (!/^MANIFEST-\d+$/.test(name))
    throw new DiskError("Damaged", current, `damaged at byte 0: it names no manifest; ${ADVICE}`);
  const manifest = `${directory}/${name}`;
  const live = reporting(manifest, () =>
    liveTables(existing(manifest, () => disk.readAll(manifest))),
  );
  const checked = { tables: live.size, blocks: 0, bytes: 0 };
  const wanted = [...live].map(([number, { sizeBytes }]) => ({
    path: `${directory}/${String(number).padStart(6, "0")}.ldb`,
    sizeBytes,
  }));
  // While one table is compared, the next one is read.
  const reader = new TableReader(disk);
  let next = wanted.length > 0 ? reader.read(wanted[0]) : undefined;
  for (const [index, { path }] of wanted.entries()) {
    const bytes = await defined(next, "the table that is read");
    const after = wanted[index + 1];
    next = after === undefined ? undefined : reader.read(after);
    // A failure is for its own table, unless one before it is damaged.
    next?.catch(() => {});
    checked.blocks += reporting(path, () => checkTable(bytes));
    checked.bytes += bytes.length;
  }
  return checked;
}

/** Reads whole tables into two buffers by turns: one is valid until the next but one is read. */
class TableReader {
  readonly #disk: Disk;
  #buffer: Uint8Array = new Uint8Array(0);
  #spare: Uint8Array = new Uint8Array(0);

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /** Resolves with the whole file. @throws DiskError */
  async read({ path, sizeBytes }: { path: string; sizeBytes: number }): Promise<Uint8Array> {
    const buffer = this.#spare.length < sizeBytes ? new Uint8Array(sizeBytes) : this.#spare;
    this.#spare = this.#buffer;
    this.#buffer = buffer;
    const file = existing(path, () => this.#disk.open(path, "read"));
    try {
      const bytes = buffer.subarray(0, sizeBytes);
      const lengthBytes = file.size();
      if (lengthBytes === sizeBytes && (await file.readLater(bytes, 0)) === sizeBytes) return bytes;
      const text = `the file has ${lengthBytes} bytes, not ${sizeBytes}`;
      throw damaged(path, new BytesDamage(lengthBytes, text));
    } finally {
      file.close();
    }
  }
}

/** What `open` returns. @throws DiskError of a damaged store where the file is not there */
function existing<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof DiskError) || error.code !== "NotFound") throw error;
    throw new DiskError("Damaged", path, `the file is not there; ${ADVICE}`, error);
  }
}

function reporting<T>(path: string, task: () => T): T {
  try {
    return task();
  } catch (error) {
    throw error instanceof BytesDamage ? damaged(path, error) : error;
  }
}

function damaged(path: string, error: BytesDamage): DiskError {
  const text = `damaged at byte ${error.offset}: ${error.message}; ${ADVICE}`;
  return new DiskError("Damaged", path, text, error);
}
