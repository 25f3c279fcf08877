/**
 * How etcd's database file differs from the backend here: the names of its buckets, and the records
 * of its bucket meta.
 *
 *     bucket here      in the file      differences
 *     key, lease       key, lease
 *     auth*            auth*
 *     alarm            alarm            no values
 *     members*         members*         a restored member writes its own: they are not imported
 *     cluster          cluster          empty in the file: the members of the new cluster
 *                                       determine their common version again; a file for a member
 *                                       of the same cluster has it
 *     meta             meta             confState as JSON; storageVersion, which is not kept here;
 *                                       no names that begin with quorate_
 */
import type { BoltFile, BoltRecord } from "@quorate/bolt";
import { CodedError, fromUtf8, type raftpb, toLatin1 } from "@quorate/proto";
import { Bucket } from "../backend/backend.ts";

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

/** Those that a member takes over from another of its cluster. */
export const MEMBER_BUCKETS = [
  ...CARRIED_BUCKETS,
  "cluster",
  "members",
  "members_removed",
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
 * The bucket meta of a file, from that of the backend; in key order. @param storageVersion such as
 * "3.7.0"; undefined for etcd before 3.6, which has none
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
