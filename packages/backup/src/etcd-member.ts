/**
 * The files of a stopped member, from etcd's to ours and back. Log, ids, term and vote, members,
 * users, leases and alarms stay, so that the member goes on in its cluster under its own id.
 *
 *     etcd                     ours                     adopting                releasing
 *     member/wal/              member/wal/              copied                  copied, with a mark
 *                                                                               at the applied index
 *     member/snap/db           member/store/db/         imported                exported
 *     member/snap/*.snap       member/snap/*.snap       none                    one for the mark
 *
 * Neither changes the files that it reads. The log may reach beyond the database; whoever starts
 * replays the rest.
 */
import { type Clock, type Disk, type KeyspaceOpener, parentOf } from "@quorate/host";
import { CodedError, defined, etcdserverpb, InternalRaftRequest, raftpb } from "@quorate/proto";
import { etcdFileCluster, importEtcdFile, type Position, Store } from "@quorate/store";
import { RecordType, readWal, SnapshotFiles, verifyWal, Wal, type WalSummary } from "@quorate/wal";

/** Bytes that are copied at a time. */
const COPY_BYTES = 1 << 20;

/**
 * Why a member's files cannot be taken:
 * - NoMember: there are none.
 * - Running: a process has them open.
 * - NotReady: the member that has them can be brought into a state in which they can be taken.
 * - Differ: they do not belong together.
 */
export type EtcdMemberErrorCode = "NoMember" | "Running" | "NotReady" | "Differ";

export class EtcdMemberError extends CodedError<EtcdMemberErrorCode> {
  readonly path: string;
  /** @param problem what is wrong, and what to do next */
  constructor(code: EtcdMemberErrorCode, path: string, problem: string) {
    super("EtcdMemberError", code, `${path}: ${problem}`);
    this.path = path;
  }
}

/** The directories of a member. */
export interface MemberFiles {
  /** DATA-DIR/member. */
  readonly memberDir: string;
  /** Inside of it unless --wal-dir is given. */
  readonly walDir: string;
}

export interface EtcdMemberDeps {
  readonly disk: Disk;
  readonly keyspaces: KeyspaceOpener;
  readonly clock: Clock;
  /** Whether a process has locked a file. */
  readonly isLocked: (path: string) => boolean;
  /** Called with the bytes of the database done so far, and of all. */
  readonly onProgress?: ((bytes: number, totalBytes: number) => void) | undefined;
}

/** A member's files that were taken over. */
export interface TakenMember {
  readonly memberId: bigint;
  readonly clusterId: bigint;
  readonly name: string;
  /** Members of its cluster. */
  readonly members: number;
  readonly appliedIndex: number;
  /** Of the log. */
  readonly lastIndex: number;
  readonly term: number;
  readonly revision: number;
  readonly keys: number;
  /** Such as "3.7.0": etcd's members of that release and the next one start on it. */
  readonly clusterVersion: string | undefined;
}

/**
 * Makes the files of a member of ours from those of a stopped member of etcd 3.5 or later.
 * @param target must not exist; complete and durable, but for its parents' names, when the promise
 * resolves, and gone when it rejects
 * @throws EtcdMemberError, EtcdFileError, BoltDamageError, WalDamageError, WalError,
 * StoreDamageError, DiskError
 */
export async function adoptMember(
  source: MemberFiles,
  target: MemberFiles,
  deps: EtcdMemberDeps,
): Promise<TakenMember> {
  const { disk } = deps;
  const log = stoppedLog(source, `${source.memberDir}/snap/db`, deps);
  const { path, position } = databaseOf(source, log, disk);
  checkTogether(path, source, log, position);
  return making(target, disk, async () => {
    const storeDir = `${target.memberDir}/store`;
    disk.makeDir(storeDir);
    disk.makeDir(`${target.memberDir}/snap`);
    await importEtcdFile(deps, path, storeDir, "same", { onProgress: deps.onProgress });
    // Opening it checks every record.
    const store = await Store.open(deps.keyspaces, storeDir);
    const taken = takenMember(source, log, store);
    await store.close({ flush: false });
    copyLog(source.walDir, target.walDir, disk);
    const { wal, hardState } = Wal.open(disk, target.walDir, "newest", deps);
    try {
      commitTo(wal, defined(hardState, "the state"), position.index);
    } finally {
      await wal.close();
    }
    for (const dir of [storeDir, target.memberDir]) disk.syncDir(dir);
    checkStopped(source, `${source.memberDir}/snap/db`, deps);
    return taken;
  });
}

/**
 * Makes the files of a member of etcd from those of a stopped member of ours.
 * @param target as for `adoptMember`
 * @throws EtcdMemberError, WalDamageError, WalError, StoreDamageError, DiskError ("Locked" while the
 * member runs)
 */
export async function releaseMember(
  source: MemberFiles,
  target: MemberFiles,
  deps: EtcdMemberDeps,
): Promise<TakenMember> {
  const { disk } = deps;
  const storeDir = `${source.memberDir}/store`;
  if (disk.stat(`${storeDir}/db`)?.kind !== "directory")
    throw new EtcdMemberError("NoMember", source.memberDir, "there is no store/db in it");
  if (disk.list(storeDir).some((name) => name.endsWith(".recv"))) {
    const next = "start it once more, and stop it";
    throw new EtcdMemberError("NotReady", storeDir, `a received snapshot is not in place: ${next}`);
  }
  const store = await Store.open(deps.keyspaces, storeDir);
  try {
    const log = verifyWal(disk, source.walDir);
    const { position } = store;
    checkTogether(storeDir, source, log, position);
    checkRest(source.walDir, position.index, disk);
    const taken = takenMember(source, log, store);
    return await making(target, disk, async () => {
      const snapDir = `${target.memberDir}/snap`;
      disk.makeDir(snapDir);
      const data = await writeDatabase(store, `${snapDir}/db`, deps);
      copyLog(source.walDir, target.walDir, disk);
      const { wal, hardState } = Wal.open(disk, target.walDir, "newest", deps);
      try {
        commitTo(wal, defined(hardState, "the state"), position.index);
        new SnapshotFiles(disk, snapDir).save({ data, metadata: position });
        await wal.saveSnapshot(position);
      } finally {
        await wal.close();
      }
      disk.remove(`${target.walDir}.lock`);
      for (const dir of [snapDir, target.memberDir]) disk.syncDir(dir);
      return taken;
    });
  } finally {
    await store.close({ flush: false });
  }
}

async function making<T>(target: MemberFiles, disk: Disk, make: () => Promise<T>): Promise<T> {
  for (const dir of [target.memberDir, parentOf(target.walDir)]) disk.makeDir(dir);
  try {
    return await make();
  } catch (error) {
    for (const dir of [target.walDir, `${target.walDir}.lock`, target.memberDir]) disk.remove(dir);
    throw error;
  }
}

function checkStopped({ walDir }: MemberFiles, database: string, deps: EtcdMemberDeps): void {
  const { disk, isLocked } = deps;
  const segments = disk.list(walDir).filter((name) => name.endsWith(".wal"));
  const open = [database, ...segments.map((name) => `${walDir}/${name}`)].find(isLocked);
  if (open !== undefined)
    throw new EtcdMemberError("Running", open, "a process has it open: stop the member first");
}

/** The log of a stopped member of etcd. */
function stoppedLog(source: MemberFiles, database: string, deps: EtcdMemberDeps): WalSummary {
  const { disk } = deps;
  if (disk.stat(database)?.kind !== "file") {
    const problem = "there is no database of etcd; give the --data-dir of an etcd member";
    throw new EtcdMemberError("NoMember", database, problem);
  }
  if (disk.stat(source.walDir)?.kind !== "directory") {
    const problem = "there is no log; give --wal-dir as etcd has it";
    throw new EtcdMemberError("NoMember", source.walDir, problem);
  }
  checkStopped(source, database, deps);
  return verifyWal(disk, source.walDir);
}

/** The newest mark from which the member may start. */
const lastMark = ({ snapshots, hardState }: WalSummary): number =>
  Math.max(0, ...snapshots.map(({ index }) => index).filter((i) => i <= (hardState?.commit ?? 0)));

/**
 * The database in use; or the one of a snapshot that etcd had received and marked in its log, and
 * not yet put in place.
 */
function databaseOf(
  { memberDir }: MemberFiles,
  log: WalSummary,
  disk: Disk,
): { path: string; position: Position } {
  const current = `${memberDir}/snap/db`;
  const mark = lastMark(log);
  const received = `${memberDir}/snap/${mark.toString(16).padStart(16, "0")}.snap.db`;
  const isBehind = mark > 0 && disk.stat(received) !== undefined;
  for (const path of isBehind ? [current, received] : [current]) {
    const { position, downgrade } = etcdFileCluster(disk, path);
    if (downgrade !== undefined) {
      const next = 'start etcd and run "etcdctl downgrade cancel"';
      const problem = `the cluster is being downgraded to ${downgrade}: ${next}`;
      throw new EtcdMemberError("NotReady", path, problem);
    }
    if (position.index >= mark || path === received) return { path, position };
  }
  return { path: current, position: etcdFileCluster(disk, current).position };
}

function checkTogether(
  store: string,
  { walDir }: MemberFiles,
  log: WalSummary,
  { index }: Position,
): void {
  const mark = lastMark(log);
  if (log.hardState !== undefined && index >= mark && index <= log.lastIndex) return;
  const problem =
    log.hardState === undefined
      ? "the log has no state: the member has never run"
      : index < mark
        ? `it ends at index ${index}, and the log in ${walDir} begins at ${mark}: entries between are missing`
        : `it is at index ${index}, and the log in ${walDir} ends at ${log.lastIndex}: the log has lost entries`;
  const advice = "take another member's files, or remove this member and add it again";
  throw new EtcdMemberError("Differ", store, `${problem}; ${advice}`);
}

function takenMember({ memberDir }: MemberFiles, log: WalSummary, store: Store): TakenMember {
  const { NodeID, ClusterID } = etcdserverpb.Metadata.decode(log.metadata);
  const { membership, position, mvcc } = store;
  const self = membership.member(NodeID);
  if (self === undefined) {
    const id = NodeID.toString(16);
    const problem = membership.isRemoved(NodeID)
      ? `the member ${id} has been removed from its cluster: its files are of no use`
      : `the member ${id} has not yet learnt that it is one: start it until it has`;
    throw new EtcdMemberError("NotReady", memberDir, problem);
  }
  return {
    memberId: NodeID,
    clusterId: ClusterID,
    name: self.name,
    members: membership.members().length,
    appliedIndex: position.index,
    lastIndex: log.lastIndex,
    term: log.hardState?.term ?? 0,
    revision: mvcc.currentRevision,
    keys: mvcc.keyCount,
    clusterVersion: membership.clusterVersion,
  };
}

/** Entries that etcd would have to apply must be ones that it can. */
function checkRest(walDir: string, appliedIndex: number, disk: Disk): void {
  for (const { type, data } of readWal(disk, walDir)) {
    if (type !== RecordType.Entry) continue;
    const entry = raftpb.Entry.decode(data);
    if (entry.index <= appliedIndex || entry.type !== raftpb.EntryType.EntryNormal) continue;
    if (InternalRaftRequest.decode(entry.data).tokenRoles === undefined) continue;
    const problem =
      `entry ${entry.index} carries the roles of a token, which etcd does not know, and is not ` +
      "applied: start the member until it has applied its log, and stop it";
    throw new EtcdMemberError("NotReady", walDir, problem);
  }
}

/** A database may be ahead of the last state in the log, whose commit is written lazily. */
function commitTo(wal: Wal, state: raftpb.HardState, index: number): void {
  if (state.commit >= index) return;
  wal.append({ ...state, commit: index }, []);
  wal.syncNow();
}

/** Copies the segments of a log; the new directory appears complete or not at all. */
function copyLog(from: string, to: string, disk: Disk): void {
  const temporary = `${to}.tmp`;
  disk.remove(temporary);
  disk.makeDir(temporary);
  for (const name of disk.list(from))
    if (name.endsWith(".wal")) copyFile(`${from}/${name}`, `${temporary}/${name}`, disk);
  disk.syncDir(temporary);
  disk.rename(temporary, to);
  disk.syncDir(parentOf(to));
}

function copyFile(from: string, to: string, disk: Disk): void {
  const source = disk.open(from, "read");
  try {
    const target = disk.open(to, "create");
    try {
      const buffer = new Uint8Array(COPY_BYTES);
      for (let at = 0; ; ) {
        const count = source.read(buffer, at);
        if (count === 0) break;
        target.write([buffer.subarray(0, count)], at);
        at += count;
      }
      target.dataSyncNow();
    } finally {
      target.close();
    }
  } finally {
    source.close();
  }
}

/** @returns the data of its .snap file: the membership, which etcd 3.5 believes before all others */
async function writeDatabase(
  store: Store,
  path: string,
  { disk, onProgress }: EtcdMemberDeps,
): Promise<Uint8Array> {
  const snapshot = await store.snapshot();
  try {
    const { data, chunks } = await snapshot.etcdFile();
    const totalBytes = snapshot.sizeEstimateBytes;
    const file = disk.open(path, "create");
    try {
      let at = 0;
      for await (const chunk of chunks) {
        file.write([chunk], at);
        at += chunk.length;
        onProgress?.(Math.min(at, totalBytes), totalBytes);
      }
      file.dataSyncNow();
    } finally {
      file.close();
    }
    return data;
  } finally {
    await snapshot.close();
  }
}
