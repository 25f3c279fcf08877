/** A stopped member's data directory as a witness of a lost quorum, and as the survivor of one. */
import { badArguments, Exit, ExitCode } from "@quorate/cli";
import { isLocked, levelKeyspaces, nodeClock, nodeDisk } from "@quorate/host/node";
import { defined, etcdserverpb, raftpb, walpb } from "@quorate/proto";
import { type Position, Store, soleSurvivor } from "@quorate/store";
import { RecordType, readWal, verifyWal, Wal } from "@quorate/wal";
import { plainPath, withStore } from "../files/data-dir.ts";
import type { Witness } from "./verdict.ts";

/** The directories of a member. */
export interface DataDirectory {
  readonly dataDir: string;
  readonly walDir: string;
}

/** "DATA-DIR" or "DATA-DIR=WAL-DIR". Throws Exit. */
export function dataDirectoryOf(text: string): DataDirectory {
  const [dataDir = "", walDir = "", more] = text.split("=").map(plainPath);
  if (dataDir === "" || more !== undefined)
    throw badArguments(`--data-dir is DATA-DIR or DATA-DIR=WAL-DIR, not ${JSON.stringify(text)}`);
  return { dataDir, walDir: walDir || `${dataDir}/member/wal` };
}

/** The last entry of a log, or the snapshot beyond it. */
function lastOf(walDir: string): Pick<Position, "index" | "term"> {
  let last = { index: 0, term: 0 };
  for (const { type, data } of readWal(nodeDisk, walDir)) {
    if (type === RecordType.Entry) {
      const { index, term } = raftpb.Entry.decode(data);
      last = { index, term };
    } else if (type === RecordType.Snapshot) {
      const { index, term } = walpb.Snapshot.decode(data);
      if (index > last.index) last = { index, term };
    }
  }
  return last;
}

/** Reads a data directory. Rejects with Exit while a member runs on it, and for damage. */
export async function witnessIn({ dataDir, walDir }: DataDirectory): Promise<Witness> {
  if (isLocked(`${walDir}.lock`))
    throw new Exit(ExitCode.error, `${dataDir}: a member runs on it: stop it first`);
  const { metadata, hardState } = verifyWal(nodeDisk, walDir);
  const { NodeID, ClusterID } = etcdserverpb.Metadata.decode(metadata);
  return withStore(dataDir, async ({ membership, mvcc, position }) => ({
    id: NodeID,
    clusterId: ClusterID,
    place: dataDir,
    isRunning: false,
    hasLeader: false,
    ...lastOf(walDir),
    commit: Math.max(hardState?.commit ?? 0, position.index),
    revision: mvcc.currentRevision,
    members: membership.members().map(({ id, name, isLearner }) => ({ ID: id, name, isLearner })),
  }));
}

/**
 * Makes a stopped member the only one of its cluster: entries at the end of its log take the others
 * out. Once more does nothing. Rejects with Exit.
 */
export async function makeAlone({ dataDir, walDir }: DataDirectory): Promise<void> {
  const opened = Wal.open(nodeDisk, walDir, "newest", { clock: nodeClock });
  try {
    const store = await Store.open(levelKeyspaces, `${dataDir}/member/store`);
    try {
      const { membership, position } = store;
      const { NodeID } = etcdserverpb.Metadata.decode(opened.metadata);
      const { entries, from } = opened;
      const survivor = {
        memberId: NodeID,
        membership,
        appliedIndex: position.index,
        entries,
      };
      const hardState = defined(opened.hardState, "the log's state");
      const alone = soleSurvivor(survivor, hardState, entries.at(-1) ?? from);
      if (alone === undefined)
        throw new Exit(ExitCode.error, `${dataDir}: by its own log this is no member any more`);
      opened.wal.append(alone.hardState, alone.entries);
      await opened.wal.sync();
    } finally {
      await store.close({ flush: false });
    }
  } finally {
    await opened.wal.close();
  }
}
