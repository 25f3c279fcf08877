/**
 * LeaseTimeToLive with the keys of a lease, of which there may be a million: between members it is
 * encoded and decoded in steps.
 *
 *     LeaseInternalResponse { LeaseTimeToLiveResponse = 1 { ID, TTL, grantedTTL, keys = 5, ... } }
 */
import {
  concat,
  fromLatin1,
  LeaseTimeToLiveResponse,
  leasepb,
  prefix,
  Reader,
  ResponseHeader,
} from "@quorate/proto";
import { mergeSort, STEP_KEYS, type Steps } from "@quorate/store";

/** LeaseInternalResponse.LeaseTimeToLiveResponse. */
const RESPONSE_FIELD = 1;
const RESPONSE_TAG = (RESPONSE_FIELD << 3) | 2;
/** A shorter response is decoded at once: it has at most some thousand keys. */
const MAX_SHORT_BYTES: number = 32 << 10;

/** The keys in order, as bytes. */
export function* sortedKeys(keys: string[]): Steps<Uint8Array[]> {
  const sorted = yield* mergeSort(keys, (a, b) => (a < b ? -1 : 1));
  const encoded: Uint8Array[] = [];
  for (const key of sorted) {
    encoded.push(fromLatin1(key));
    if (encoded.length % STEP_KEYS === 0) yield;
  }
  return encoded;
}

/** The body of an answer to another member. */
export function* encodeInternal(response: LeaseTimeToLiveResponse): Steps<Uint8Array> {
  const { keys, ...rest } = response;
  // Etcd's members end where there is none.
  const header = ResponseHeader.create();
  const parts = [LeaseTimeToLiveResponse.encode({ ...rest, header, keys: [] })];
  for (let at = 0; at < keys.length; at += STEP_KEYS) {
    const some = { ID: 0n, TTL: 0, keys: keys.slice(at, at + STEP_KEYS) };
    parts.push(LeaseTimeToLiveResponse.encode(some));
    yield;
  }
  const sizeBytes = parts.reduce((sum, { length }) => sum + length, 0);
  return concat([prefix(RESPONSE_TAG, sizeBytes), ...parts]);
}

/**
 * The response in such a body; undefined if it has none. The keys are views of the body.
 * @throws WireError
 */
export function* decodeInternal(body: Uint8Array): Steps<LeaseTimeToLiveResponse | undefined> {
  if (body.length <= MAX_SHORT_BYTES)
    return leasepb.LeaseInternalResponse.decode(body).LeaseTimeToLiveResponse;
  const reader = new Reader(body);
  if (reader.tag() !== RESPONSE_TAG) return undefined;
  reader.enter();
  let found: LeaseTimeToLiveResponse | undefined;
  for (let from = reader.pos, fields = 1; reader.pos < reader.end; fields++) {
    reader.skip(reader.tag(), {});
    if (fields % STEP_KEYS !== 0 && reader.pos < reader.end) continue;
    const part = LeaseTimeToLiveResponse.decode(body.subarray(from, reader.pos));
    if (found === undefined) found = part;
    else for (const key of part.keys) found.keys.push(key);
    from = reader.pos;
    yield;
  }
  return found;
}
