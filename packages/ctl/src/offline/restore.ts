/**
 * What restores from a snapshot file and from a continuous backup have in common: how far revisions
 * are moved on, and the restore.
 */
import { levelKeyspaces } from "@quorate/host/node";
import { idToHex } from "@quorate/proto";
import { clusterId, Store } from "@quorate/store";
import type { Flags, FlagValues } from "../flags.ts";
import { Exit, ExitCode, type Io } from "../io.ts";
import { logInfo } from "../log.ts";
import { Progress } from "../progress.ts";
import { makeMember, type NewMember } from "./new-member.ts";

/** The flags that have clients notice that history has gone back. */
export const bumpFlags: Flags = {
  "bump-revision": { kind: "int", defaultText: "0", doc: "how much to add to the latest revision" },
  "mark-compacted": {
    kind: "bool",
    defaultText: "false",
    doc: "declare all history up to the latest revision compacted (needed with --bump-revision, and only then)",
  },
};

/**
 * How much is to be added to the latest revision. Throws Exit, with etcd's text where there is one.
 */
export function bumpRevisionOf(flags: FlagValues): number {
  const bumpRevision = flags.int("bump-revision");
  if (bumpRevision < 0)
    throw new Exit(
      ExitCode.badArguments,
      `--bump-revision must not be negative, and is ${bumpRevision}`,
    );
  if (bumpRevision > 0 !== flags.bool("mark-compacted")) {
    throw new Exit(ExitCode.badArguments, "--mark-compacted required if --revision-bump > 0");
  }
  return bumpRevision;
}

/**
 * Makes the member with progress, looks through its store and says what is in it. What it logs is
 * what etcdutl logs: scripts look for "added member".
 * @param fillStore makes the store in the folder that it is told, and tells how far it has come in
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
    await makeMember(target, async (storeDir) => {
      await fillStore(storeDir, (bytes, totalBytes) => progress.update(bytes, totalBytes));
      // Opening it checks every record against those before it.
      const store = await Store.open(levelKeyspaces, storeDir);
      revision = store.mvcc.currentRevision;
      keys = store.mvcc.keyCount;
      await store.close({ flush: false });
    });
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
