/** Verifies the checksums of all tables of a LevelDB that no process has open. */
import { type Disk, DiskError } from "@quorate/host";
import { toLatin1 } from "@quorate/proto";
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
 * Throws a DiskError "Damaged" with the file and the offset of the first damaged block; ignores
 * files that are not part of the database.
 */
export function checkLevelFiles(disk: Disk, directory: string): CheckedTables {
  const current = `${directory}/CURRENT`;
  const name = toLatin1(disk.readAll(current)).replace(/\n$/, "");
  if (!/^MANIFEST-\d+$/.test(name))
    throw new DiskError("Damaged", current, `damaged at byte 0: it names no manifest; ${ADVICE}`);
  const manifest = `${directory}/${name}`;
  const live = reporting(manifest, () => liveTables(readAll(disk, manifest)));
  const checked = { tables: live.size, blocks: 0, bytes: 0 };
  for (const [number, { sizeBytes }] of live) {
    const path = `${directory}/${String(number).padStart(6, "0")}.ldb`;
    const bytes = readAll(disk, path);
    reporting(path, () => {
      if (bytes.length !== sizeBytes)
        throw new BytesDamage(bytes.length, `the file has ${bytes.length} bytes, not ${sizeBytes}`);
      checked.blocks += checkTable(bytes);
    });
    checked.bytes += bytes.length;
  }
  return checked;
}

function readAll(disk: Disk, path: string): Uint8Array {
  try {
    return disk.readAll(path);
  } catch (error) {
    if (!(error instanceof DiskError) || error.code !== "NotFound") throw error;
    throw new DiskError("Damaged", path, `the file is not there; ${ADVICE}`, error);
  }
}

function reporting<T>(path: string, task: () => T): T {
  try {
    return task();
  } catch (error) {
    if (!(error instanceof BytesDamage)) throw error;
    throw new DiskError(
      "Damaged",
      path,
      `damaged at byte ${error.offset}: ${error.message}; ${ADVICE}`,
      error,
    );
  }
}
