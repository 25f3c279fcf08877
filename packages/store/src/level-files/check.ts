/** Verifies the checksums of all tables of a LevelDB that no process has open. */
import { type Disk, DiskError } from "@quorate/host";
import { defined, toLatin1 } from "@quorate/proto";
import { BytesDamage, TwoBuffers } from "./bytes.ts";
import { liveTables, tablePath } from "./manifest.ts";
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
    path: tablePath(directory, number),
    sizeBytes,
  }));
  // While one table is compared, the next one is read.
  const buffers = new TwoBuffers();
  const read = (index: number): Promise<Uint8Array> | undefined => {
    const table = wanted[index];
    const bytes = table && readTable(disk, table, buffers);
    // A failure is for its own table, unless one before it is damaged.
    bytes?.catch(() => {});
    return bytes;
  };
  let next = read(0);
  for (const [index, { path }] of wanted.entries()) {
    const bytes = await defined(next, "the table that is read");
    next = read(index + 1);
    checked.blocks += reporting(path, () => checkTable(bytes));
    checked.bytes += bytes.length;
  }
  return checked;
}

/** Resolves with the whole file. @throws DiskError */
async function readTable(
  disk: Disk,
  { path, sizeBytes }: { path: string; sizeBytes: number },
  buffers: TwoBuffers,
): Promise<Uint8Array> {
  const bytes = buffers.take(sizeBytes).subarray(0, sizeBytes);
  const file = existing(path, () => disk.open(path, "read"));
  try {
    const lengthBytes = file.size();
    if (lengthBytes === sizeBytes && (await file.readLater(bytes, 0)) === sizeBytes) return bytes;
    const text = `the file has ${lengthBytes} bytes, not ${sizeBytes}`;
    throw damaged(path, new BytesDamage(lengthBytes, text));
  } finally {
    file.close();
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
