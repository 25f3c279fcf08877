/**
 * The position in the log that every batch of the backend records: the index and term of the last
 * entry it holds, and the configuration at that entry.
 *
 *     bucket meta: "consistent_index" 8 bytes big-endian, "term" 8 bytes big-endian, "confState"
 *     raftpb.ConfState (names as in etcd)
 */
import { fromUtf8, raftpb, readU64BE, WireError, writeU64BE } from "@quorate/proto";
import { type Backend, Bucket } from "./backend.ts";
import { StoreDamageError } from "./errors.ts";

const CONSISTENT_INDEX = fromUtf8("consistent_index");
const TERM = fromUtf8("term");
const CONF_STATE = fromUtf8("confState");

/** The position of the state in the log. */
export interface Position {
  readonly index: number;
  readonly term: number;
  readonly confState: raftpb.ConfState;
}

function u64(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  writeU64BE(bytes, value);
  return bytes;
}

/**
 * Reads the position with `get`; index 0 if none was ever written. @param path the store's
 * directory, for error texts
 */
export function readPosition(
  get: (key: Uint8Array) => Uint8Array | undefined,
  path: string,
): Position {
  const index = get(CONSISTENT_INDEX);
  const term = get(TERM);
  const confState = get(CONF_STATE);
  if (index === undefined && term === undefined && confState === undefined) {
    return { index: 0, term: 0, confState: raftpb.ConfState.create() };
  }
  try {
    if (index?.length !== 8 || term?.length !== 8 || confState === undefined)
      throw new RangeError("a record is missing or has a wrong size");
    return {
      index: readU64BE(index),
      term: readU64BE(term),
      confState: raftpb.ConfState.decode(confState),
    };
  } catch (error) {
    if (error instanceof WireError || error instanceof RangeError)
      throw new StoreDamageError(path, "bucket meta", error.message);
    throw error;
  }
}

/** Puts the position into the batch that is being collected. */
export function writePosition(backend: Backend, position: Position): void {
  backend.put(Bucket.meta, CONSISTENT_INDEX, u64(position.index));
  backend.put(Bucket.meta, TERM, u64(position.term));
  backend.put(Bucket.meta, CONF_STATE, raftpb.ConfState.encode(position.confState));
}
