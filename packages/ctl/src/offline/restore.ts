/**
 * The restore that snapshot files and continuous backups share, and its flags.
 */
import { makeMember, type NewMember } from "@quorate/backup";
import type { Flags, FlagValues } from "@quorate/cli";
import { badArguments, boolFlag, type Io, intFlag, Progress } from "@quorate/cli";
import { levelKeyspaces, nodeClock, nodeDisk } from "@quorate/host/node";
import { idToHex } from "@quorate/proto";
import { clusterId, Store } from "@quorate/store";
import { logInfo } from "../connect/log.ts";

/** The flags of what is different from the source. */
export const restoreFlags: Flags = {
  "bump-revision": intFlag("how much to add to the latest revision"),
  "mark-compacted": boolFlag(
    "declare all history up to the latest revision compacted (needed with --bump-revision, and only then)",
  ),
  "disable-auth": boolFlag("do not enforce users and roles in the restored cluster; they are kept"),
};

/**
 * The value of --bump-revision. Throws Exit, with etcd's text where there is one.
 */
export function bumpRevisionOf(flags: FlagValues): number {
  const bumpRevision = flags.int("bump-revision");
  if (bumpRevision < 0)
    throw badArguments(`--bump-revision must not be negative, and is ${bumpRevision}`);
  if (bumpRevision > 0 !== flags.bool("mark-compacted")) {
    throw badArguments("--mark-compacted required if --revision-bump > 0");
  }
  return bumpRevision;
}

/**
 * Makes the member, checks its store and prints a summary. The log lines are etcdutl's: scripts
 * match "added member".
 * @param fillStore makes the store in the directory that it is called with, and reports progress in
 * bytes
 */
export async function restoreMember(
  io: Io,
  source: string,
  target: NewMember,
  fillStore: (
    storeDir: string,
    onProgress: (bytes: number, totalBytes: number) => void,
  ) => Promise<unknown>,
): Promise<void> {
  const places = {
    path: source,
    "wal-dir": target.walDir,
    "data-dir": target.dataDir,
    "snap-dir": `${target.dataDir}/member/snap`,
  };
  logInfo(io, "restoring snapshot", places);
  const progress = new Progress(io, "restoring ");
  let revision = 0;
  let keys = 0;
  try {
    const fillAndCheck = async (storeDir: string): Promise<void> => {
      await fillStore(storeDir, (bytes, totalBytes) => progress.update(bytes, totalBytes));
      // Opening the store checks every record against those before it.
      const store = await Store.open(levelKeyspaces, storeDir);
      revision = store.mvcc.currentRevision;
      keys = store.mvcc.keyCount;
      await store.close({ flush: false });
    };
    await makeMember(target, fillAndCheck, { disk: nodeDisk, clock: nodeClock });
  } finally {
    progress.end();
  }
  const { members } = target.cluster;
  const cluster = idToHex(clusterId(members.map(({ id }) => id)));
  for (const { id, peerUrls, isLearner } of members) {
    logInfo(io, "added member", {
      "cluster-id": cluster,
      "local-member-id": "0",
      "added-peer-id": idToHex(id),
      "added-peer-peer-urls": peerUrls,
      "added-peer-is-learner": isLearner,
    });
  }
  logInfo(io, "restored snapshot", places);
  io.stdout(
    `Restored ${source} into ${target.dataDir}: revision ${revision}, ${keys} keys; ` +
      `member ${idToHex(target.self.id)} (${target.self.name}) of ${members.length}\n`,
  );
}
