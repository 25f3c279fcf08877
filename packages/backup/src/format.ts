/**
 * The files of a continuous backup.
 *
 *     DIR/base-REVISION-TIME.db       a snapshot file of etcd's format; the state at that revision
 *                                     (16 hex digits), taken at that time
 *     DIR/segment-NUMBER.qbk          changes since, in the order of their numbers (8 digits); each
 *                                     run begins a new one
 *     DIR/lock                        held by the active run
 *
 * A segment is the 8 bytes "QRMBKUP1" and then records, appended and synced;
 * integers are big-endian:
 *
 *     length of the payload  u32
 *     CRC-32C                u32   of the kind and the payload
 *     kind                   u8
 *     payload
 *         1 head      cluster id u64, revision u64 (earlier files have all changes up to it),
 *                     time u64
 *         2 changes   time u64, revision u64, { flags u8 (1: deleted), length u32, mvccpb.KeyValue
 *                     }*   all changes of that revision
 *         3 leases    time u64, flags u8 (1: begins the list of all), { id i64, time to live u64 in
 *                     seconds, 0 for gone }*
 *         4 progress  time u64, revision u64   no further change up to that time
 *         5 hash      time u64, revision u64, compact revision i64, hash u32   from HashKV
 *         6 synced    time u64, offset u64   all bytes before that offset were durable
 *         7 users     time u64, auth revision u64, flags u8 (1: enforced), { kind u8 (1 user, 2
 *                     role), length u32, authpb.User or authpb.Role }*   all of them, as the API
 *                     shows them: users without passwords
 *
 * The first record is a head. Times are milliseconds since 1970 by the clock of the machine that
 * records the backup: when a change was received. The record of a deletion has only the key, as in
 * the store. After a crash any sector behind the last sync may be missing; readers cut such records
 * off. A broken record that a later "synced" covers is damage.
 */
import {
  authpb,
  concat,
  crc32c,
  EMPTY,
  fromUtf8,
  readBigU64BE,
  readU32BE,
  readU64BE,
  toUtf8,
  writeBigU64BE,
  writeU32BE,
  writeU64BE,
} from "@quorate/proto";
import type { LaterUsers } from "@quorate/store";

export const MAGIC = "QRMBKUP1";
/** Bytes of length, checksum and kind of a record. */
export const RECORD_HEAD_BYTES = 9;
/** The longest record: far above the content of a request, which one revision is. */
export const MAX_RECORD_BYTES = 1024 * 1024 * 1024;
/** Size of the payload of a "synced" record. */
export const SYNCED_BYTES = 16;
/** Size of the payload of a "users" record before its list. */
const USERS_BYTES = 17;
/** Leases in one record; longer lists take several. */
export const MAX_LEASES_PER_RECORD = 10_000;

/** The kinds of records. */
export const Kind = {
  head: 1,
  changes: 2,
  leases: 3,
  progress: 4,
  hash: 5,
  synced: 6,
  users: 7,
} as const;

/** One change of a revision, in the order of its transaction. */
export interface RevisionChange {
  readonly deleted: boolean;
  /** The encoded mvccpb.KeyValue as the store keeps it. */
  readonly record: Uint8Array;
}

/** A record of a segment. */
export type BackupRecord =
  | {
      readonly kind: "head";
      readonly clusterId: bigint;
      readonly revision: number;
      readonly timeMs: number;
    }
  | {
      readonly kind: "changes";
      readonly timeMs: number;
      readonly revision: number;
      readonly changes: readonly RevisionChange[];
    }
  | {
      readonly kind: "leases";
      readonly timeMs: number;
      readonly all: boolean;
      readonly leases: ReadonlyMap<bigint, number>;
    }
  | { readonly kind: "progress"; readonly timeMs: number; readonly revision: number }
  | {
      readonly kind: "hash";
      readonly timeMs: number;
      readonly revision: number;
      readonly compactRevision: number;
      readonly hash: number;
    }
  | { readonly kind: "synced"; readonly timeMs: number; readonly offset: number }
  | { readonly kind: "users"; readonly timeMs: number; readonly users: LaterUsers };

/** The file name of a base. */
export function baseName(revision: number, timeMs: number): string {
  const time = new Date(timeMs)
    .toISOString()
    .replace(/[-:]/g, "")
    .replace(/\.\d+Z$/, "Z");
  return `base-${revision.toString(16).padStart(16, "0")}-${time}.db`;
}

/** Parses the name of a base; undefined for other files. */
export function parseBaseName(name: string): { revision: number; timeMs: number } | undefined {
  const parts = /^base-([0-9a-f]{16})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/.exec(name);
  if (parts === null) return undefined;
  const [, revision = "", ...time] = parts;
  const [year, month, day, hour, minute, second] = time.map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return {
    revision: Number.parseInt(revision, 16),
    timeMs: Date.UTC(year, month - 1, day, hour, minute, second),
  };
}

export function segmentName(number: number): string {
  return `segment-${String(number).padStart(8, "0")}.qbk`;
}

/** Parses the name of a segment; undefined for other files. */
export function parseSegmentName(name: string): number | undefined {
  const digits = /^segment-(\d{8})\.qbk$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

class Payload {
  readonly bytes: Uint8Array;
  #at = 0;
  constructor(sizeBytes: number) {
    this.bytes = new Uint8Array(sizeBytes);
  }
  u8(value: number): this {
    this.bytes[this.#at++] = value;
    return this;
  }
  u32(value: number): this {
    writeU32BE(this.bytes, value, this.#at);
    this.#at += 4;
    return this;
  }
  u64(value: number): this {
    writeU64BE(this.bytes, value, this.#at);
    this.#at += 8;
    return this;
  }
  i64(value: bigint): this {
    writeBigU64BE(this.bytes, BigInt.asUintN(64, value), this.#at);
    this.#at += 8;
    return this;
  }
  raw(bytes: Uint8Array): this {
    this.bytes.set(bytes, this.#at);
    this.#at += bytes.length;
    return this;
  }
}

function payloadOf(record: BackupRecord): Uint8Array {
  switch (record.kind) {
    case "head":
      return new Payload(24).i64(record.clusterId).u64(record.revision).u64(record.timeMs).bytes;
    case "changes": {
      const sizeBytes = record.changes.reduce((sum, change) => sum + 5 + change.record.length, 16);
      const payload = new Payload(sizeBytes).u64(record.timeMs).u64(record.revision);
      for (const change of record.changes)
        payload
          .u8(change.deleted ? 1 : 0)
          .u32(change.record.length)
          .raw(change.record);
      return payload.bytes;
    }
    case "leases": {
      const payload = new Payload(9 + 16 * record.leases.size)
        .u64(record.timeMs)
        .u8(record.all ? 1 : 0);
      for (const [id, ttlSeconds] of record.leases) payload.i64(id).u64(ttlSeconds);
      return payload.bytes;
    }
    case "progress":
      return new Payload(16).u64(record.timeMs).u64(record.revision).bytes;
    case "hash":
      return new Payload(28)
        .u64(record.timeMs)
        .u64(record.revision)
        .i64(BigInt(record.compactRevision))
        .u32(record.hash).bytes;
    case "synced":
      return new Payload(SYNCED_BYTES).u64(record.timeMs).u64(record.offset).bytes;
    case "users": {
      const list = usersList(record.users);
      return new Payload(USERS_BYTES + list.length)
        .u64(record.timeMs)
        .u64(record.users.authRevision)
        .u8(record.users.isEnabled ? 1 : 0)
        .raw(list).bytes;
    }
  }
}

/** The bytes of a record. */
export function encodeRecord(record: BackupRecord): Uint8Array {
  const payload = payloadOf(record);
  const bytes = new Uint8Array(RECORD_HEAD_BYTES + payload.length);
  bytes[8] = Kind[record.kind];
  bytes.set(payload, RECORD_HEAD_BYTES);
  writeU32BE(bytes, payload.length, 0);
  writeU32BE(bytes, crc32c(0, bytes, 8), 4);
  return bytes;
}

/** Bytes of each kind's payload before its list, if it has one. */
const FIXED_BYTES: ReadonlyMap<number, number> = new Map([
  [Kind.head, 24],
  [Kind.changes, 16],
  [Kind.leases, 9],
  [Kind.progress, 16],
  [Kind.hash, 28],
  [Kind.synced, SYNCED_BYTES],
  [Kind.users, USERS_BYTES],
]);

/** Decodes a record whose checksum has been verified. Throws RangeError if it is malformed. */
export function decodeRecord(kind: number, payload: Uint8Array): BackupRecord {
  if (payload.length < (FIXED_BYTES.get(kind) ?? 0)) throw new RangeError("a record is cut short");
  const timeMs = readU64BE(payload, kind === Kind.head ? 16 : 0);
  switch (kind) {
    case Kind.head:
      return {
        kind: "head",
        clusterId: readBigU64BE(payload, 0),
        revision: readU64BE(payload, 8),
        timeMs,
      };
    case Kind.changes: {
      const changes: RevisionChange[] = [];
      for (let at = 16; at < payload.length; ) {
        const end = at + 5 + readU32BE(payload, at + 1);
        if (end > payload.length) throw new RangeError("a change is cut short");
        const flags = payload[at] ?? 0;
        changes.push({ deleted: (flags & 1) === 1, record: payload.subarray(at + 5, end) });
        at = end;
      }
      return { kind: "changes", timeMs, revision: readU64BE(payload, 8), changes };
    }
    case Kind.leases: {
      if ((payload.length - 9) % 16 !== 0) throw new RangeError("a list of leases is cut short");
      const leases = new Map<bigint, number>();
      for (let at = 9; at < payload.length; at += 16)
        leases.set(BigInt.asIntN(64, readBigU64BE(payload, at)), readU64BE(payload, at + 8));
      return { kind: "leases", timeMs, all: payload[8] === 1, leases };
    }
    case Kind.progress:
      return { kind: "progress", timeMs, revision: readU64BE(payload, 8) };
    case Kind.hash: {
      const compactRevision = Number(BigInt.asIntN(64, readBigU64BE(payload, 16)));
      if (!Number.isSafeInteger(compactRevision))
        throw new RangeError(`${compactRevision} is no revision`);
      return {
        kind: "hash",
        timeMs,
        revision: readU64BE(payload, 8),
        compactRevision,
        hash: readU32BE(payload, 24),
      };
    }
    case Kind.synced:
      return { kind: "synced", timeMs, offset: readU64BE(payload, 8) };
    case Kind.users: {
      const authRevision = readU64BE(payload, 8);
      const isEnabled = payload[16] === 1;
      const lists = readUsersList(payload.subarray(USERS_BYTES));
      return { kind: "users", timeMs, users: { isEnabled, authRevision, ...lists } };
    }
    default:
      throw new RangeError(`a record has the unknown kind ${kind}: a newer version wrote it`);
  }
}

type Lists = Pick<LaterUsers, "users" | "roles">;

const USER = 1;
const ROLE = 2;
const HEAD_BYTES = 5;

/** The bytes of a list. */
export function usersList({ users, roles }: Lists): Uint8Array {
  const parts: Uint8Array[] = [];
  const add = (kind: number, message: Uint8Array): void => {
    const head = new Uint8Array(HEAD_BYTES);
    head[0] = kind;
    writeU32BE(head, message.length, 1);
    parts.push(head, message.slice());
  };
  for (const [name, list] of users) {
    const key = fromUtf8(name).slice();
    add(USER, authpb.User.encode({ name: key, password: EMPTY, roles: [...list] }));
  }
  for (const [name, permissions] of roles) {
    const key = fromUtf8(name).slice();
    add(ROLE, authpb.Role.encode({ name: key, keyPermission: [...permissions] }));
  }
  return concat(parts);
}

/** Reads a list. @throws RangeError for one that is cut short, WireError */
export function readUsersList(bytes: Uint8Array): Lists {
  const users = new Map<string, readonly string[]>();
  const roles = new Map<string, readonly authpb.Permission[]>();
  for (let at = 0; at < bytes.length; ) {
    const start = at + HEAD_BYTES;
    if (start > bytes.length) throw new RangeError("a list of users is cut short");
    const end = start + readU32BE(bytes, at + 1);
    if (end > bytes.length) throw new RangeError("a list of users is cut short");
    const message = bytes.slice(start, end);
    if (bytes[at] === USER) {
      const { name, roles: list } = authpb.User.decode(message);
      users.set(toUtf8(name), list);
    } else if (bytes[at] === ROLE) {
      const { name, keyPermission } = authpb.Role.decode(message);
      roles.set(toUtf8(name), keyPermission);
    } else throw new RangeError(`${bytes[at]} is no kind of a user or a role`);
    at = end;
  }
  return { users, roles };
}
