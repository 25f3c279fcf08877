/**
 * A store or a log that is found damaged when a member starts. With a damaged log it never starts.
 * A damaged store:
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
import {
  type DamagedMember,
  type Disk,
  DiskError,
  damagedLogSteps,
  type Logger,
  replacementSteps,
} from "@quorate/host";
import { CodedError, idToHex } from "@quorate/proto";
import { type Store, StoreDamageError } from "@quorate/store";
import { memberOf, WalDamageError } from "@quorate/wal";
import type { MemberConfig } from "./config/member-config.ts";
import { urlsText } from "./config/url.ts";

/**
 * Damaged stores that are kept beside the one in use; beyond that the member does not make another
 * one by itself.
 */
export const MAX_DAMAGED_STORES = 9;

type MemberFiles = Pick<MemberConfig, "name" | "dataDir" | "walDir" | "advertisePeerUrls">;

export interface DamagedStoreParts {
  readonly config: MemberFiles & Pick<MemberConfig, "storeDir" | "selfHeal">;
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
  const byLog = canBeMade
    ? "its log begins with the first entry, so with --self-heal this member makes its store from the log; or, "
    : "";
  return `${error.message}. What to do next: ${byLog}${replacementSteps(damaged(config, memberId))}`;
}

function damaged(config: MemberFiles, memberId: bigint | undefined): DamagedMember {
  const { name, dataDir, walDir, advertisePeerUrls } = config;
  const peerUrls = urlsText(advertisePeerUrls);
  const id = memberId === undefined ? {} : { id: idToHex(memberId) };
  const isInside = walDir.startsWith(`${dataDir}/`);
  return { name, dataDir, peerUrls, ...id, ...(isInside ? {} : { walDir }) };
}

/** A start that a damaged log ends, with the next commands. */
export class DamagedLogError extends CodedError<"Damaged"> {
  constructor(message: string, cause: WalDamageError) {
    super("DamagedLogError", "Damaged", message, cause);
  }
}

/**
 * Opens the log. Throws DamagedLogError where it is damaged, or what `open` throws for other
 * reasons.
 */
export function openUndamagedLog<T>(config: MemberFiles, disk: Disk, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof WalDamageError)) throw error;
    const steps = damagedLogSteps(damaged(config, memberOf(disk, config.walDir)));
    throw new DamagedLogError(`${error.message}. ${steps}`, error);
  }
}
