/**
 * Makes the data directory of a member of a new cluster around a store that comes from elsewhere:
 * the store first, then the log, which begins with the membership and appears whole. A member does
 * not start on one without the other, so an interrupted restore is detected.
 *
 *     DATA-DIR/member/store/db   the store, at the index of the log's last entry
 *     DATA-DIR/member/snap/      empty
 *     WAL-DIR/                   one entry per member, a hard state that commits them, and a
 *                                snapshot record at the last one
 */
import { type Clock, type Disk, parentOf } from "@quorate/host";
import { defined, etcdserverpb, raftpb } from "@quorate/proto";
import { clusterId, encodeMember, type Member, memberId, type NewCluster } from "@quorate/store";
import { Wal } from "@quorate/wal";

/** The first term of a new cluster. */
const TERM = 1;

/** The directories of a new member, and its cluster. */
export interface NewMember {
  readonly dataDir: string;
  readonly walDir: string;
  readonly storeDir: string;
  readonly self: Member;
  readonly cluster: NewCluster;
}

/**
 * The member `name` of a new cluster.
 * @param urls the peer URLs of every member, by name
 * @param token of the cluster, from which ids are derived as etcd derives them
 */
export function newMember(
  name: string,
  urls: ReadonlyMap<string, readonly string[]>,
  token: string,
  dataDir: string,
  walDir: string,
): NewMember {
  const members = membersOf(urls, token);
  const confState = raftpb.ConfState.create({ voters: members.map(({ id }) => id) });
  return {
    dataDir,
    walDir,
    storeDir: `${dataDir}/member/store`,
    self: defined(
      members.find((member) => member.name === name),
      "the new member",
    ),
    cluster: { members, position: { index: members.length, term: TERM, confState } },
  };
}

/** The members of a cluster with their ids, by ascending id. */
function membersOf(urls: ReadonlyMap<string, readonly string[]>, token: string): Member[] {
  return [...urls]
    .map(([name, peerUrls]) => ({
      id: memberId(peerUrls, token),
      name,
      peerUrls,
      clientUrls: [],
      isLearner: false,
    }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

export interface MakeMemberDeps {
  readonly disk: Disk;
  readonly clock: Clock;
}

/**
 * Makes the member; everything is durable when the promise resolves. A failure removes what was
 * made. Rejects with what `fillStore` rejects with, and DiskError.
 * @param fillStore makes the store in the directory that it is called with
 */
export async function makeMember(
  target: NewMember,
  fillStore: (storeDir: string) => Promise<void>,
  deps: MakeMemberDeps,
): Promise<void> {
  const { dataDir, walDir, storeDir } = target;
  const { disk } = deps;
  const existed = disk.stat(dataDir) !== undefined;
  const memberDir = `${dataDir}/member`;
  try {
    for (const dir of [dataDir, memberDir, `${memberDir}/snap`, storeDir, parentOf(walDir)]) {
      disk.makeDir(dir);
    }
    await fillStore(storeDir);
    for (const dir of [storeDir, memberDir, dataDir, parentOf(dataDir)]) disk.syncDir(dir);
    await writeLog(target, deps);
  } catch (error) {
    disk.remove(existed ? memberDir : dataDir);
    throw error;
  }
}

async function writeLog(
  { walDir, self, cluster }: NewMember,
  { disk, clock }: MakeMemberDeps,
): Promise<void> {
  const { members, position } = cluster;
  const metadata = etcdserverpb.Metadata.encode({
    NodeID: self.id,
    ClusterID: clusterId(members.map(({ id }) => id)),
  });
  const wal = Wal.create(disk, walDir, metadata, { clock });
  try {
    wal.append(
      { term: TERM, vote: defined(members[0], "a member").id, commit: members.length },
      members.map((member, i) => ({
        type: raftpb.EntryType.EntryConfChange,
        term: TERM,
        index: i + 1,
        data: raftpb.ConfChange.encode({
          type: raftpb.ConfChangeType.ConfChangeAddNode,
          nodeId: member.id,
          context: encodeMember(member),
        }),
      })),
    );
    await wal.saveSnapshot({
      index: position.index,
      term: position.term,
      confState: position.confState,
    });
  } finally {
    await wal.close();
  }
}
