/**
 * The active alarms: NOSPACE (the store is full) and CORRUPT (members differ), each for one member
 * or, with id 0, for all. A part of the replicated state (etcd: server/etcdserver/api/v3alarm).
 *
 *     bucket alarm: encoded AlarmMember -> the compact revision when it was raised, u64 big-endian
 *     (etcd: empty, and never read)
 */
import { AlarmMember, AlarmType, readU64BE, toHex, WireError, writeU64BE } from "@quorate/proto";
import { type Backend, type BackendSnapshot, Bucket } from "./backend.ts";
import { StoreDamageError } from "./errors.ts";

/** One alarm. */
export interface Alarm {
  readonly memberId: bigint;
  readonly type: AlarmType;
  /**
   * The store's compact revision when the alarm was raised, -1 for none: a later compaction may
   * have freed space since.
   */
  readonly compactRevision: number;
}

const NEVER_COMPACTED = -1;

function keyOf(memberId: bigint, type: AlarmType): Uint8Array {
  return AlarmMember.encode({ memberID: memberId, alarm: type });
}

export class Alarms {
  readonly #backend: Backend;
  readonly #raised = new Map<string, Alarm>();
  /** True while a NOSPACE alarm of any member is active. */
  noSpace = false;
  /** True while a CORRUPT alarm of any member is active. */
  corrupt = false;

  private constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Reads the alarms as of a snapshot. @param path the store's directory, for error texts */
  static async open(backend: Backend, snapshot: BackendSnapshot, path: string): Promise<Alarms> {
    const alarms = new Alarms(backend);
    for await (const slice of snapshot.scan(Bucket.alarm)) {
      for (const [key, value] of slice)
        alarms.#raised.set(toHex(key), readRecord(path, key, value));
    }
    alarms.#summarise();
    return alarms;
  }

  /** True while any alarm is active. */
  get any(): boolean {
    return this.#raised.size > 0;
  }

  /** The alarms of a kind, or all for NONE, by kind and then by member. */
  list(type: AlarmType = AlarmType.NONE): Alarm[] {
    const all = [...this.#raised.values()].filter(
      (alarm) => type === AlarmType.NONE || alarm.type === type,
    );
    return all.sort((a, b) => a.type - b.type || (a.memberId < b.memberId ? -1 : 1));
  }

  /** Raises an alarm and returns it; an active one is unchanged. */
  activate(memberId: bigint, type: AlarmType, compactRevision: number): Alarm {
    const key = keyOf(memberId, type);
    const raised = this.#raised.get(toHex(key));
    if (raised !== undefined) return raised;
    const alarm = { memberId, type, compactRevision };
    this.#raised.set(toHex(key), alarm);
    this.#backend.put(Bucket.alarm, key, encodeRevision(compactRevision));
    this.#summarise();
    return alarm;
  }

  /** Ends an alarm and returns it; undefined if it was not active. */
  deactivate(memberId: bigint, type: AlarmType): Alarm | undefined {
    const key = keyOf(memberId, type);
    const alarm = this.#raised.get(toHex(key));
    if (alarm === undefined) return undefined;
    this.#raised.delete(toHex(key));
    this.#backend.delete(Bucket.alarm, key);
    this.#summarise();
    return alarm;
  }

  #summarise(): void {
    const types = [...this.#raised.values()].map(({ type }) => type);
    this.noSpace = types.includes(AlarmType.NOSPACE);
    this.corrupt = types.includes(AlarmType.CORRUPT);
  }
}

/** Empty for a store that was never compacted. */
function encodeRevision(compactRevision: number): Uint8Array {
  if (compactRevision === NEVER_COMPACTED) return new Uint8Array(0);
  const bytes = new Uint8Array(8);
  writeU64BE(bytes, compactRevision);
  return bytes;
}

function readRecord(path: string, key: Uint8Array, value: Uint8Array): Alarm {
  try {
    const { memberID, alarm } = AlarmMember.decode(key);
    return {
      memberId: memberID,
      type: alarm,
      compactRevision: value.length === 0 ? NEVER_COMPACTED : readU64BE(value),
    };
  } catch (error) {
    if (error instanceof WireError || error instanceof RangeError) {
      throw new StoreDamageError(path, `bucket alarm, key ${toHex(key)}`, error.message);
    }
    throw error;
  }
}
