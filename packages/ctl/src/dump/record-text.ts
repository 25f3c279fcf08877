/**
 * Records of the backend as etcd-dump-db prints them: raw in quotes, or decoded by bucket.
 */

import { authpb, KeyValue, leasepb, quoteBytes, readU64BE, WireError } from "@quorate/proto";
import type { BucketRecord } from "./bucket-source.ts";
import { protoText } from "./proto-text.ts";
import { wireFields } from "./wire.ts";

type Decoder = (record: BucketRecord) => string;

const REVISION_BYTES = 17;

/** Key and value in quotes. */
export function rawText([key, value]: BucketRecord): string {
  return `key=${quoteBytes(key)}, value=${quoteBytes(value)}`;
}

/**
 * A decoded record of a known bucket; raw for other buckets and for records that do not decode.
 */
export function decodedText(bucket: string, record: BucketRecord): string {
  const decoder = decoders[bucket];
  if (decoder === undefined) return rawText(record);
  try {
    return decoder(record);
  } catch (error) {
    if (error instanceof RangeError || error instanceof WireError)
      return `${rawText(record)} (cannot be decoded: ${error.message})`;
    throw error;
  }
}

/**
 * A revision key and its record. Throws RangeError or WireError if they are malformed.
 */
export function keyText([key, value]: BucketRecord): string {
  const { main, sub, isTombstone } = revisionOf(key);
  const kv = KeyValue.decode(value);
  const revisions = `created ${kv.createRevision} | mod ${kv.modRevision} | ver ${kv.version}`;
  const shown = `key ${quoteBytes(kv.key)} | val ${quoteBytes(kv.value)} | ${revisions}`;
  return `rev={Revision:{Main:${main} Sub:${sub}} tombstone:${isTombstone}}, value=[${shown}]`;
}

/** Decodes the 17 or 18 bytes of a revision key. Throws RangeError if they are malformed. */
export function revisionOf(key: Uint8Array): { main: number; sub: number; isTombstone: boolean } {
  const isTombstone = key.length === REVISION_BYTES + 1 && key[REVISION_BYTES] === 0x74;
  if ((key.length !== REVISION_BYTES && !isTombstone) || key[8] !== 0x5f)
    throw new RangeError("the key is no revision");
  return { main: readU64BE(key, 0), sub: readU64BE(key, 9), isTombstone };
}

const decoders: Readonly<Record<string, Decoder>> = {
  key: keyText,
  lease: ([key, value]) => {
    if (key.length !== 8) throw new RangeError("lease ID must be 8-byte");
    const { TTL, RemainingTTL } = leasepb.Lease.decode(value);
    return `lease ID=${Buffer.from(key).toString("hex")}, TTL=${TTL}s, remaining TTL=${RemainingTTL}s`;
  },
  auth: ([key, value]) => {
    const isRevision = Buffer.from(key).toString("latin1") === "authRevision" && value.length === 8;
    return `key=${quoteBytes(key)}, value=${isRevision ? readU64BE(value) : `[${[...value].join(" ")}]`}`;
  },
  authRoles: ([, value]) => {
    const { name } = authpb.Role.decode(value);
    const permissions = [...wireFields(value)].filter(({ number }) => number === 2);
    const texts = permissions.map((one) => protoText("authpb.Permission", one.value as Uint8Array));
    return `role=${quoteBytes(name)}, keyPermission=[${texts.join(" ")}]`;
  },
  authUsers: ([, value]) => {
    const { name, roles } = authpb.User.decode(value);
    const options = [...wireFields(value)].findLast(({ number }) => number === 4)?.value as
      | Uint8Array
      | undefined;
    const shown = options === undefined ? "<nil>" : protoText("authpb.UserAddOptions", options);
    return `user=${quoteBytes(name)}, roles=[${roles.map((role) => quoteBytes(Buffer.from(role))).join(" ")}], option=${shown}`;
  },
  meta: (record) => {
    const [key, value] = record;
    const name = Buffer.from(key).toString("latin1");
    if ((name === "consistent_index" || name === "term") && value.length === 8)
      return `key=${quoteBytes(key)}, value=${readU64BE(value)}`;
    if (name === "scheduledCompactRev" || name === "finishedCompactRev") {
      const { main, sub } = revisionOf(value);
      return `key=${quoteBytes(key)}, value={${main} ${sub}}`;
    }
    return rawText(record);
  },
};
