/**
 * How etcd's database file differs from the backend here: the names of its buckets, and the records
 * of its bucket meta.
 *
 *     bucket here      in the file      differences
 *     key, lease       key, lease
 *     auth*            auth*
 *     alarm            alarm            no values
 *     members*         members*         the members of a new cluster write their own
 *     cluster          cluster          the same within a cluster; empty for a new one, whose
 *                                       members determine their common version again
 *     meta             meta             confState as JSON; storageVersion, which is not kept here;
 *                                       no names that begin with quorate_
 */
import type { BoltFile, BoltRecord } from "@quorate/bolt";
import { CodedError, fromUtf8, type raftpb, readU64BE, toLatin1, toUtf8 } from "@quorate/proto";
import { Bucket } from "../backend/backend.ts";
import type { Position } from "../backend/meta.ts";

/** The buckets of a file, by name. */
export const FILE_BUCKETS = {
  alarm: Bucket.alarm,
  auth: Bucket.auth,
  authRoles: Bucket.authRoles,
  authUsers: Bucket.authUsers,
  cluster: Bucket.cluster,
  key: Bucket.key,
  lease: Bucket.lease,
  members: Bucket.members,
  members_removed: Bucket.membersRemoved,
  meta: Bucket.meta,
} as const;
export type FileBucket = keyof typeof FILE_BUCKETS;

/** Buckets with the same records here and there, which a restored cluster keeps. */
export const CARRIED_BUCKETS = [
  "key",
  "lease",
  "auth",
  "authUsers",
  "authRoles",
  "alarm",
] as const satisfies readonly FileBucket[];

/** Buckets that belong to the members of one cluster, with the same records here and there. */
export const CLUSTER_BUCKETS = [
  "members",
  "members_removed",
  "cluster",
] as const satisfies readonly FileBucket[];

/** A valid bbolt file that is not an etcd database. */
export class EtcdFileError extends CodedError<"NotEtcd"> {
  readonly path: string;
  /** @param etcdText etcd's text for this error, which programs look for at the beginning */
  constructor(path: string, problem: string, etcdText?: string) {
    super(
      "EtcdFileError",
      "NotEtcd",
      etcdText === undefined ? `${path}: ${problem}` : `${etcdText}: ${path}: ${problem}`,
    );
    this.path = path;
  }
}

/**
 * The bucket meta of a file, from that of the backend; in key order.
 * @param storageVersion such as "3.7.0"; undefined for etcd 3.5, which does not know it
 */
export function metaForFile(
  records: readonly BoltRecord[],
  confState: raftpb.ConfState,
  storageVersion: string | undefined,
): BoltRecord[] {
  const others = records.filter(
    ([key]) => !/^(?:confState|storageVersion|quorate_.*)$/.test(toLatin1(key)),
  );
  const all: BoltRecord[] = [
    ...others,
    [fromUtf8("confState"), fromUtf8(confStateJson(confState))],
  ];
  if (storageVersion !== undefined)
    all.push([fromUtf8("storageVersion"), fromUtf8(storageVersion)]);
  return all.sort(([a], [b]) => (toLatin1(a) < toLatin1(b) ? -1 : 1));
}

/** In Go's form: ids are bare numbers of 64 bits. */
function confStateJson({
  voters,
  learners,
  votersOutgoing,
  learnersNext,
  autoLeave,
}: raftpb.ConfState): string {
  const lists = { voters, learners, voters_outgoing: votersOutgoing, learners_next: learnersNext };
  const fields = Object.entries(lists)
    .filter(([, ids]) => ids.length > 0)
    .map(([name, ids]) => `"${name}":[${ids.join(",")}]`);
  return `{${[...fields, `"auto_leave":${autoLeave}`].join(",")}}`;
}

/** The configuration in Go's form. Throws SyntaxError, TypeError. */
function confStateOf(text: string): raftpb.ConfState {
  // As texts: JSON.parse would round ids.
  const parsed = JSON.parse(text.replace(/\d+/g, '"$&"')) as Record<string, unknown>;
  const ids = (name: string): bigint[] =>
    ((parsed[name] ?? []) as string[]).map((id) => BigInt.asUintN(64, BigInt(id)));
  return {
    voters: ids("voters"),
    learners: ids("learners"),
    votersOutgoing: ids("voters_outgoing"),
    learnersNext: ids("learners_next"),
    autoLeave: parsed["auto_leave"] === true,
  };
}

/**
 * The place in its cluster's log that a file has the state of.
 * @throws EtcdFileError for a file of etcd 3.4 or before, which do not record it whole
 */
export function positionOfFile(path: string, meta: ReadonlyMap<string, Uint8Array>): Position {
  const [index, term, confState] = ["consistent_index", "term", "confState"].map((name) =>
    meta.get(name),
  );
  if (index?.length !== 8 || term?.length !== 8 || confState === undefined) {
    throw new EtcdFileError(
      path,
      "it has no index, term and configuration: etcd records them since 3.5, with the first " +
        "change of the members or the first snapshot of its log",
    );
  }
  try {
    const conf = confStateOf(toUtf8(confState));
    return { index: readU64BE(index), term: readU64BE(term), confState: conf };
  } catch (error) {
    throw new EtcdFileError(path, `bucket meta, key confState: ${(error as Error).message}`);
  }
}

/**
 * The bucket meta of an open file, by name. @throws EtcdFileError for a database that is not etcd's
 */
export function metaOfFile(file: BoltFile): Map<string, Uint8Array> {
  const names = file.bucketNames;
  if (!names.includes("key") || !names.includes("meta")) {
    const found =
      names.length === 0 ? "no buckets" : `the buckets ${names.slice(0, 10).join(", ")}`;
    throw new EtcdFileError(
      file.path,
      `it is a bbolt database, but not one of etcd: it has ${found}, and must have "key" and "meta"`,
    );
  }
  const meta = new Map<string, Uint8Array>();
  for (const slice of file.records("meta"))
    for (const [key, value] of slice) meta.set(toLatin1(key), value);
  return meta;
}
