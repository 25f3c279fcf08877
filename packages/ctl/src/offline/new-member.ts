/**
 * Making the data directory of a member of a new cluster around a store that is taken over from
 * elsewhere: the store first, then the log, which begins with the membership and appears whole. A
 * member does not start on one without the other, so that a restore which was interrupted is
 * noticed.
 *
 *     DATA-DIR/member/store/db   the store, at the index of the log's last entry
 *     DATA-DIR/member/snap/      empty
 *     WAL-DIR/                   one entry a member, the state that calls them committed, and a
 *                                mark at the last
 */
import { existsSync, readdirSync } from "node:fs";
import { type Clock, type Disk, parentOf } from "@quorate/host";
import { nodeClock, nodeDisk } from "@quorate/host/node";
import { etcdserverpb, raftpb } from "@quorate/proto";
import { clusterId, encodeMember, type Member, type NewCluster } from "@quorate/store";
import { Wal } from "@quorate/wal";
import type { Flags } from "../flags.ts";
import { Exit, ExitCode } from "../io.ts";
import type { Invocation } from "../program.ts";
import { checkLocalMember, membersOf, parseInitialCluster } from "./initial-cluster.ts";

/** The first term of a new cluster. */
const TERM = 1;

/** The flags that say which member of which cluster is made, as etcdutl has them. */
export const newMemberFlags: Flags = {
  "data-dir": {
    kind: "string",
    defaultText: "",
    doc: "data directory to make (NAME.quorate if none is given)",
  },
  "wal-dir": {
    kind: "string",
    defaultText: "",
    doc: "folder of the log to make (in the data directory if none is given)",
  },
  "initial-cluster": {
    kind: "string",
    defaultText: "default=http://localhost:2380",
    doc: "names and peer URLs of all members of the restored cluster",
  },
  "initial-cluster-token": {
    kind: "string",
    defaultText: "etcd-cluster",
    doc: "token of the restored cluster",
  },
  "initial-advertise-peer-urls": {
    kind: "string",
    defaultText: "http://localhost:2380",
    doc: "this member's peer URLs",
  },
  name: { kind: "string", defaultText: "default", doc: "this member's name" },
};

/** Where a member is to be made, and the cluster it will belong to. */
export interface NewMember {
  readonly dataDir: string;
  readonly walDir: string;
  readonly storeDir: string;
  readonly self: Member;
  readonly cluster: NewCluster;
}

/**
 * What newMemberFlags ask for, checked before anything is written. Rejects with Exit, with etcd's
 * texts.
 */
export async function newMemberOf({ flags }: Invocation): Promise<NewMember> {
  const name = flags.string("name");
  const urls = parseInitialCluster(flags.string("initial-cluster"));
  await checkLocalMember(urls, name, flags.string("initial-advertise-peer-urls"));
  const dataDir = (flags.string("data-dir") || `${name}.quorate`).replace(/(.)\/+$/, "$1");
  const walDir = flags.string("wal-dir").replace(/(.)\/+$/, "$1");
  if (existsSync(dataDir) && !isEmptyFolder(dataDir)) {
    throw new Exit(
      ExitCode.error,
      `data-dir ${JSON.stringify(dataDir)} not empty or could not be read`,
    );
  }
  if (walDir !== "" && existsSync(walDir))
    throw new Exit(ExitCode.error, `wal-dir ${JSON.stringify(walDir)} exists`);
  return newMember(
    name,
    urls,
    flags.string("initial-cluster-token"),
    dataDir,
    walDir || `${dataDir}/member/wal`,
  );
}

/** The member `name` of a new cluster. @param urls the peer URLs of all its members */
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
    self: members.find((member) => member.name === name)!,
    cluster: { members, position: { index: members.length, term: TERM, confState } },
  };
}

function isEmptyFolder(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

/** Where members are made. */
export interface Machine {
  readonly disk: Disk;
  readonly clock: Clock;
}

const thisMachine: Machine = { disk: nodeDisk, clock: nodeClock };

/**
 * Makes the member; `fillStore` makes the store in the folder that it is told. What was made is
 * removed again if that fails; it is durable when the promise resolves.
 */
export async function makeMember(
  target: NewMember,
  fillStore: (storeDir: string) => Promise<void>,
  machine: Machine = thisMachine,
): Promise<void> {
  const { dataDir, walDir, storeDir } = target;
  const { disk } = machine;
  const wasThere = disk.stat(dataDir) !== undefined;
  try {
    for (const dir of [
      dataDir,
      `${dataDir}/member`,
      `${dataDir}/member/snap`,
      storeDir,
      parentOf(walDir),
    ])
      disk.makeDir(dir);
    await fillStore(storeDir);
    for (const dir of [storeDir, `${dataDir}/member`, dataDir, parentOf(dataDir)])
      disk.syncDir(dir);
    await writeLog(target, machine);
  } catch (error) {
    disk.remove(wasThere ? `${dataDir}/member` : dataDir);
    throw error;
  }
}

async function writeLog(
  { walDir, self, cluster }: NewMember,
  { disk, clock }: Machine,
): Promise<void> {
  const { members, position } = cluster;
  const metadata = etcdserverpb.Metadata.encode({
    NodeID: self.id,
    ClusterID: clusterId(members.map(({ id }) => id)),
  });
  const wal = Wal.create(disk, walDir, metadata, { clock });
  try {
    wal.append(
      { term: TERM, vote: members[0].id, commit: members.length },
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
