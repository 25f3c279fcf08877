/**
 * From a data directory to a member's log and store: a first start writes the log that a new
 * cluster begins with, a later one reads back what the directory contains and checks that its
 * parts belong together.
 *
 *     member/wal/          the log (its metadata: member and cluster id)
 *     member/snap/*.snap   marks of the log's beginning, in etcd's format
 *     member/store/db      the store
 *
 * The log and the store may differ in one way only: the store may lag behind the log, which is then
 * replayed. A store ahead of the log, or behind the log's first entry, is damage, and nothing is
 * started on it.
 */
import { type Disk, type KeyspaceOpener, type Logger, parentOf } from "@quorate/host";
import { CodedError, defined, etcdserverpb, idToHex, raftpb, type walpb } from "@quorate/proto";
import { bootstrapEntries } from "@quorate/raft";
import {
  checkLevelFiles,
  clusterId,
  encodeMember,
  type Member,
  memberId,
  recoverDirectories,
  Store,
  soleSurvivor,
} from "@quorate/store";
import type { PeerCall } from "@quorate/transport";
import { Wal, type WalMeasures, type WalOptions } from "@quorate/wal";
import { verifyBootstrap } from "./config/bootstrap.ts";
import { detectForeignData } from "./config/foreign-data.ts";
import type { MemberConfig } from "./config/member-config.ts";
import { openUndamaged, openUndamagedLog } from "./damaged-store.ts";
import { type DiscoveredDeps, discovered } from "./membership/discovered.ts";
import type { Removal } from "./membership/index.ts";
import {
  checkNotStartedBefore,
  type Joining,
  joinCluster,
  otherMembers,
} from "./membership/join.ts";

/** A data directory that no member may be started on, and what to do. */
export class BootstrapError extends CodedError<"CannotStart"> {
  constructor(message: string) {
    super("BootstrapError", "CannotStart", message);
  }
}

export interface BootstrapDeps extends DiscoveredDeps {
  readonly disk: Disk;
  readonly keyspaces: KeyspaceOpener;
  readonly walSegmentBytes?: number | undefined;
  /** Of the store, but for onProgress. */
  readonly storeOptions?: Parameters<typeof Store.open>[2];
  /** Asks other members; without it a new cluster is formed unseen, and none can be joined. */
  readonly callPeer?: PeerCall | undefined;
  readonly walMeasures?: WalMeasures | undefined;
}

/** A member's state, read and checked. */
export interface Bootstrapped {
  readonly memberId: bigint;
  readonly clusterId: bigint;
  readonly wal: Wal;
  readonly store: Store;
  readonly hardState: raftpb.HardState;
  /** Where the log begins. */
  readonly snapshot: raftpb.SnapshotMetadata;
  readonly entries: readonly raftpb.Entry[];
  /**
   * The members of the cluster that this one joins, until it has its own membership; empty
   * otherwise.
   */
  readonly remotes: readonly Member[];
  /**
   * Set if this member was removed, and the one voter that is left may need its vote: it takes part
   * for that alone.
   */
  readonly removal?: Removal | undefined;
}

/**
 * Opens a data directory, or makes a new one. Throws BootstrapError, ConfigError, and the errors of
 * log and store.
 */
export async function bootstrap(config: MemberConfig, deps: BootstrapDeps): Promise<Bootstrapped> {
  const foreign = detectForeignData(deps.disk, config.dataDir);
  if (foreign !== undefined) throw new BootstrapError(foreign);
  const walOptions: WalOptions = {
    clock: deps.clock,
    logger: deps.logger.child("wal"),
    segmentBytes: deps.walSegmentBytes,
    measures: deps.walMeasures,
  };
  if (Wal.exists(deps.disk, config.walDir)) {
    if (config.discovery !== undefined)
      deps.logger.warn(
        "discovery token is ignored since cluster already initialized; valid logs are found",
        { "wal-dir": config.walDir },
      );
    return reopen(config, deps, walOptions);
  }
  return begin(config, deps, walOptions);
}

function makeDirectories(config: MemberConfig, disk: Disk): void {
  for (const dir of [parentOf(config.walDir), config.snapDir, config.storeDir])
    makeDurably(disk, dir);
}

/**
 * Makes a directory and those above it so that none of their names is lost in a crash: a name is
 * durable when the directory it stands in is synced.
 */
function makeDurably(disk: Disk, dir: string): void {
  if (disk.stat(dir) !== undefined) return;
  const above = parentOf(dir);
  if (above !== dir) makeDurably(disk, above);
  disk.makeDir(dir);
  disk.syncDir(above);
}

/** The members that --initial-cluster names, with their ids. */
export function initialMembers(config: MemberConfig): Member[] {
  return [...config.initialCluster].map(([name, urls]) => {
    const peerUrls = urls.map((url) => url.text);
    return {
      id: memberId(peerUrls, config.initialClusterToken),
      name,
      peerUrls,
      clientUrls: [],
      isLearner: false,
    };
  });
}

/**
 * The entries a new cluster's log begins with: one for each member, in the order of their ids, the
 * same on all.
 */
function firstEntries(members: readonly Member[]): raftpb.Entry[] {
  const sorted = [...members].sort((a, b) => (a.id < b.id ? -1 : 1));
  return bootstrapEntries(
    sorted.map((member) => ({ id: member.id, context: encodeMember(member) })),
  );
}

async function begin(
  config: MemberConfig,
  deps: BootstrapDeps,
  walOptions: WalOptions,
): Promise<Bootstrapped> {
  if (deps.disk.stat(`${config.storeDir}/db`) !== undefined) {
    throw new BootstrapError(
      `${config.storeDir}/db holds a store, but there is no log in ${config.walDir}: one without the other is no member's state. ` +
        "If --wal-dir was changed, set it back; if the log is lost, remove this member from the cluster, move its data directory away " +
        "and add it again",
    );
  }
  config = await discovered(config, deps);
  const joining = config.isNewCluster ? undefined : await join(config, deps);
  const members = joining === undefined ? await newCluster(config, deps) : [];
  const ids = joining ?? {
    memberId: idOf(config, members),
    clusterId: clusterId(members.map((member) => member.id)),
  };
  makeDirectories(config, deps.disk);
  deps.logger.info("starting local member", {
    "local-member-id": idToHex(ids.memberId),
    "cluster-id": idToHex(ids.clusterId),
  });
  // The log comes first: a start that ends before its first entries is made up for, a store without
  // a log is not.
  const metadata = etcdserverpb.Metadata.encode({ NodeID: ids.memberId, ClusterID: ids.clusterId });
  const wal = Wal.create(deps.disk, config.walDir, metadata, walOptions);
  try {
    const store = await openStore(config, deps, joining?.followsEtcd);
    const begun = await writeFirstEntries(wal, members);
    return {
      memberId: ids.memberId,
      clusterId: ids.clusterId,
      wal,
      store,
      ...begun,
      remotes: joining?.members ?? [],
    };
  } catch (error) {
    await wal.close();
    throw error;
  }
}

/** The members of a new cluster; this one must not have been started before. */
async function newCluster(config: MemberConfig, deps: BootstrapDeps): Promise<readonly Member[]> {
  await verifyBootstrap(config);
  const members = initialMembers(config);
  if (deps.callPeer !== undefined && members.length > 1) {
    await checkNotStartedBefore(config, idOf(config, members), {
      call: deps.callPeer,
      logger: deps.logger,
    });
  }
  return members;
}

function idOf(config: MemberConfig, members: readonly Member[]): bigint {
  const own = members.find((member) => member.name === config.name);
  return defined(own, "this member").id;
}

function join(config: MemberConfig, deps: BootstrapDeps): Promise<Joining> {
  if (deps.callPeer === undefined)
    throw new BootstrapError("this member cannot ask others, and so join no cluster");
  return joinCluster(config, { call: deps.callPeer, logger: deps.logger });
}

/**
 * For a member that joins and has stopped before it had the cluster's membership: it is fetched
 * again from a member that responds now.
 */
async function remotesOf(
  config: MemberConfig,
  deps: BootstrapDeps,
  store: Store,
  id: bigint,
): Promise<readonly Member[]> {
  if (
    config.isNewCluster ||
    deps.callPeer === undefined ||
    store.membership.member(id) !== undefined
  )
    return [];
  return otherMembers(config, { call: deps.callPeer, logger: deps.logger });
}

type Begun = Pick<Bootstrapped, "hardState" | "snapshot" | "entries">;

/**
 * A joining member has no entries; the leader sends it all there is. Its state too is durable
 * before it takes part: the others soon know its name, and do not let one of that name join again.
 * The term is below that of every leader.
 */
async function writeFirstEntries(wal: Wal, members: readonly Member[]): Promise<Begun> {
  const entries = firstEntries(members);
  const hardState = { term: 1, vote: 0n, commit: entries.length };
  wal.append(hardState, entries);
  await wal.sync();
  return { hardState, snapshot: raftpb.SnapshotMetadata.create(), entries };
}

/**
 * LevelDB compares no checksums when it reads, so a byte that changed on the disk would be served,
 * or a block of records passed over.
 */
async function checkStoreFiles(
  config: MemberConfig,
  { disk, clock, logger }: BootstrapDeps,
): Promise<void> {
  const directory = `${config.storeDir}/db`;
  if (disk.stat(`${directory}/CURRENT`) === undefined) return;
  const startedMs = clock.monotonicMs();
  const { tables, bytes } = await checkLevelFiles(disk, directory);
  logger.info("compared the checksums of the store's files", {
    tables,
    bytes,
    took: `${Math.round(clock.monotonicMs() - startedMs)}ms`,
  });
}

async function openStore(
  config: MemberConfig,
  deps: BootstrapDeps,
  followsEtcd = deps.storeOptions?.followsEtcd,
): Promise<Store> {
  let nextReport = 1_000_000;
  const store = await Store.open(deps.keyspaces, config.storeDir, {
    ...deps.storeOptions,
    followsEtcd,
    onProgress: (records) => {
      if (records < nextReport) return;
      nextReport += 1_000_000;
      deps.logger.info("restoring the index from the store", { records });
    },
  });
  // The keyspace makes its own files durable, but not its directory's name.
  deps.disk.syncDir(config.storeDir);
  return store;
}

async function reopen(
  config: MemberConfig,
  deps: BootstrapDeps,
  walOptions: WalOptions,
): Promise<Bootstrapped> {
  const { disk, logger } = deps;
  makeDirectories(config, disk);
  const opened = openUndamagedLog(config, disk, () =>
    Wal.open(disk, config.walDir, "newest", walOptions),
  );
  const mark = opened.from;
  let store: Store | undefined;
  try {
    if (recoverDirectories(disk, config.storeDir, mark.index)) {
      logger.info("put a received snapshot in place that was accepted before the last stop", {
        "snapshot-index": mark.index,
      });
    }
    const ids = etcdserverpb.Metadata.decode(opened.metadata);
    const open = async () => {
      await checkStoreFiles(config, deps);
      return openStore(config, deps);
    };
    store = await openUndamaged({
      config,
      disk,
      logger,
      memberId: ids.NodeID,
      logBeginsBehind: mark.index,
      open,
    });
    checkTogether(config, store, mark, opened.entries);
    checkName(config, store, ids.NodeID, logger);
    const removal = removalOf(config, store, ids.NodeID);
    if (removal !== undefined && (removal.voters !== 1 || config.forceNewCluster))
      throw removal.error;
    const base = { memberId: ids.NodeID, clusterId: ids.ClusterID, wal: opened.wal, store };
    // The first write carries a state, so without one it was cut short, and no member depends on
    // what it left. Of a new cluster those are some of its members, and a member that took them for
    // all would elect a leader with a part of the others.
    if (mark.index === 0 && opened.hardState === undefined) {
      const { followsEtcd, ...begun } = await beginAgain(config, deps, ids, opened.wal);
      if (followsEtcd === store.followsEtcd) return { ...base, ...begun };
      // Its first start ended before the store said so.
      await store.close({ flush: false });
      store = await openStore(config, deps, followsEtcd);
      return { ...base, store, ...begun };
    }
    const found = {
      hardState: opened.hardState ?? raftpb.HardState.create(),
      snapshot: {
        index: mark.index,
        term: mark.term,
        confState: mark.confState ?? raftpb.ConfState.create(),
      },
      entries: opened.entries,
    };
    if (config.forceNewCluster)
      return { ...base, ...(await removeOtherMembers(found, base, logger)), remotes: [] };
    logger.info("restarting local member", {
      "cluster-id": idToHex(ids.ClusterID),
      "local-member-id": idToHex(ids.NodeID),
      "commit-index": opened.hardState?.commit ?? 0,
      "applied-index": store.position.index,
      "dropped-tail-bytes": opened.droppedTailBytes,
    });
    return {
      ...base,
      ...found,
      remotes: removal === undefined ? await remotesOf(config, deps, store, ids.NodeID) : [],
      removal,
    };
  } catch (error) {
    await store?.close({ flush: false });
    await opened.wal.close();
    throw error;
  }
}

/** The removal of this member, if its store has it. */
function removalOf(
  config: MemberConfig,
  store: Store,
  id: bigint,
): (Removal & { readonly error: Error }) | undefined {
  if (!store.membership.isRemoved(id)) return undefined;
  const { index, confState } = store.position;
  const error = new BootstrapError(
    `the member ${idToHex(id)} has been permanently removed from the cluster; ` +
      `its data in ${config.dataDir} cannot be used again: move it away and add a new member`,
  );
  return { index, voters: confState.voters.length, error };
}

/** Takes the others out of the membership, durably, before anything is started. */
async function removeOtherMembers(
  found: Begun,
  { memberId, wal, store }: Pick<Bootstrapped, "memberId" | "wal" | "store">,
  logger: Logger,
): Promise<Begun> {
  const { entries, hardState } = found;
  const last = entries[entries.length - 1] ?? found.snapshot;
  const { membership, position } = store;
  const survivor = { memberId, membership, appliedIndex: position.index, entries };
  const alone = soleSurvivor(survivor, hardState, last);
  if (alone === undefined) {
    throw new BootstrapError(
      `--force-new-cluster: by its own log the member ${idToHex(memberId)} is no member of the cluster; use another's data`,
    );
  }
  logger.warn("forcing restart member", {
    "local-member-id": idToHex(memberId),
    "wal-commit-index": hardState.commit,
    "commit-index": alone.hardState.commit,
    "entries-not-known-to-be-committed":
      last.index - Math.max(hardState.commit, survivor.appliedIndex),
    advice: "start it without --force-new-cluster from now on",
  });
  wal.append(alone.hardState, alone.entries);
  await wal.sync();
  return { ...found, hardState: alone.hardState, entries: [...entries, ...alone.entries] };
}

/**
 * A first start that ended before its first entries were whole in the log: it is made up for, if
 * the configuration is still the same.
 */
async function beginAgain(
  config: MemberConfig,
  deps: BootstrapDeps,
  ids: etcdserverpb.Metadata,
  wal: Wal,
): Promise<Begun & Pick<Bootstrapped, "remotes"> & { readonly followsEtcd: boolean }> {
  config = await discovered(config, deps);
  const joining = config.isNewCluster ? undefined : await join(config, deps);
  const members = initialMembers(config);
  const cluster = joining?.clusterId ?? clusterId(members.map((member) => member.id));
  const isMember =
    joining === undefined
      ? members.some((member) => member.id === ids.NodeID)
      : joining.memberId === ids.NodeID;
  if (cluster !== ids.ClusterID || !isMember) {
    throw new BootstrapError(
      `the log in ${config.walDir} was made for member ${idToHex(ids.NodeID)} of cluster ${idToHex(ids.ClusterID)} and holds nothing ` +
        "whole yet, and --initial-cluster now names another cluster: start it with the flags of its first start, or move the data " +
        "directory away",
    );
  }
  const begun = await writeFirstEntries(wal, joining === undefined ? members : []);
  const followsEtcd = joining?.followsEtcd ?? deps.storeOptions?.followsEtcd ?? false;
  return { ...begun, remotes: joining?.members ?? [], followsEtcd };
}

/**
 * Warns where the data is of a member of another name, as a rename is allowed. Throws
 * BootstrapError where that name is another member's: the data directory was confused then.
 */
function checkName(config: MemberConfig, store: Store, id: bigint, logger: Logger): void {
  const { name, dataDir } = config;
  const members = store.membership.members();
  const known = members.find((member) => member.id === id)?.name ?? "";
  if (known === "" || known === name) return;
  const other = members.find((member) => member.name === name && member.id !== id);
  if (other !== undefined && !config.forceNewCluster) {
    throw new BootstrapError(
      `the data directory ${dataDir} is that of the member ${known} (${idToHex(id)}), and --name is ${name}, which is another ` +
        `member of its cluster (${idToHex(other.id)}): give --data-dir and --name of the same member`,
    );
  }
  logger.warn("the data directory is that of a member with another name, which is renamed", {
    "data-dir": dataDir,
    "local-member-id": idToHex(id),
    "name-before": known,
    name,
    advice: "if that is not meant, stop it, and give --data-dir and --name of the same member",
  });
}

function checkTogether(
  config: MemberConfig,
  store: Store,
  mark: walpb.Snapshot,
  entries: readonly raftpb.Entry[],
): void {
  const applied = store.position.index;
  const last = entries.at(-1)?.index ?? mark.index;
  const advice =
    "remove this member from the cluster, move its data directory away and add it again; if no other member has the data, restore a backup";
  if (applied < mark.index) {
    throw new BootstrapError(
      `the store in ${config.storeDir} ends at index ${applied}, and the log in ${config.walDir} begins at ${mark.index}: ` +
        `entries between are missing; ${advice}`,
    );
  }
  if (applied > last) {
    throw new BootstrapError(
      `the store in ${config.storeDir} is at index ${applied}, and the log in ${config.walDir} ends at ${last}: ` +
        `the log has lost entries; ${advice}`,
    );
  }
}
