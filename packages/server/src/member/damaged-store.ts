/**
 * A store that is found damaged when a member starts.
 *
 *     the log begins with the first entry,   the damaged store is moved to STORE.damaged-N, and a
 *                                            new one is made from the log, which is
 *     and --self-heal is given               read again from its beginning: what it has is what the
 *                                            store had
 *     else                                   the member does not start, and says which commands
 *                                            come next
 *
 * The log and Raft's state are not touched in either case: what the member has voted for and
 * acknowledged stays as it is.
 */
import { type Disk, DiskError, type Logger } from "@quorate/host";
import { CodedError, idToHex } from "@quorate/proto";
import { type Store, StoreDamageError } from "@quorate/store";
import type { MemberConfig } from "../config/index.ts";

/**
 * Damaged stores that are kept beside the one in use; beyond that the member does not make another
 * one by itself.
 */
export const MAX_DAMAGED_STORES = 9;

export interface DamagedStoreParts {
  readonly config: Pick<MemberConfig, "name" | "dataDir" | "storeDir" | "selfHeal">;
  readonly disk: Disk;
  readonly logger: Logger;
  readonly memberId: bigint;
  /** Where the log begins: 0 if it has all entries there ever were. */
  readonly logBeginsBehind: number;
  /**
   * Compares checksums and opens the store. Rejects with DiskError "Damaged" or StoreDamageError
   * where it is damaged.
   */
  open(): Promise<Store>;
}

function isDamage(error: unknown): error is Error {
  return (
    error instanceof StoreDamageError || (error instanceof DiskError && error.code === "Damaged")
  );
}

/** A start that a damaged store ends, with the next commands. */
export class DamagedStoreError extends CodedError<"Damaged"> {
  constructor(message: string, cause: unknown) {
    super("DamagedStoreError", "Damaged", message, cause);
  }
}

/**
 * Opens the store, or a new one that the log fills. Rejects with DamagedStoreError, or what `open`
 * rejects with for other reasons.
 */
export async function openUndamaged(parts: DamagedStoreParts): Promise<Store> {
  try {
    return await parts.open();
  } catch (error) {
    if (!isDamage(error)) throw error;
    const canBeMade = parts.logBeginsBehind === 0;
    if (!canBeMade || !parts.config.selfHeal)
      throw new DamagedStoreError(nextSteps(parts, error, canBeMade), error);
    moveAside(parts, error);
    return parts.open();
  }
}

function moveAside({ config, disk, logger }: DamagedStoreParts, error: Error): void {
  const { storeDir } = config;
  const places = Array.from(
    { length: MAX_DAMAGED_STORES },
    (_, i) => `${storeDir}.damaged-${i + 1}`,
  );
  const free = places.find((path) => disk.stat(path) === undefined);
  if (free === undefined) {
    const advice = `${MAX_DAMAGED_STORES} damaged stores lie beside it already: find out what damages them, then remove them`;
    throw new DamagedStoreError(`${error.message}. ${advice}`, error);
  }
  logger.error(
    "the store is damaged; it is moved aside, and a new one is made from the log, which begins with the first entry",
    {
      error: error.message,
      "moved-to": free,
      advice: "look at the disk before it does this again",
    },
  );
  disk.rename(storeDir, free);
  disk.makeDir(storeDir);
  disk.syncDir(storeDir.slice(0, storeDir.lastIndexOf("/")) || "/");
}

function nextSteps(
  { config, memberId }: DamagedStoreParts,
  error: Error,
  canBeMade: boolean,
): string {
  const { name, dataDir } = config;
  const byReplacing =
    `with other members: "quoratectl member replace ${name} NEW-PEER-URL" against them, which needs no data of this one; or, to keep ` +
    `its peer URL, "quoratectl member remove ${idToHex(memberId)}", "mv ${dataDir} ${dataDir}.damaged", "quoratectl member add ${name} ` +
    '--learner --peer-urls=ITS-PEER-URL" and a start with what that prints. Without other members: "quorateutl snapshot restore" with a ' +
    `backup into another data directory`;
  const byLog = canBeMade
    ? "its log begins with the first entry, so with --self-heal this member makes its store from the log; or, "
    : "";
  return `${error.message}. What to do next: ${byLog}${byReplacing}`;
}
