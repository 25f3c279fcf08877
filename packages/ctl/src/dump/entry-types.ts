/**
 * The entry types of --entry-type, with etcd-dump-logs' names, and how each is printed.
 */
import { idToHex, raftpb, WireError } from "@quorate/proto";
import { protoText } from "./proto-text.ts";
import { wireFields } from "./wire.ts";

/** The names, in the order of the help. */
export const entryTypes = [
  "ConfigChange",
  "Normal",
  "Request",
  "InternalRaftRequest",
  "IRRRange",
  "IRRPut",
  "IRRDeleteRange",
  "IRRTxn",
  "IRRCompaction",
  "IRRLeaseGrant",
  "IRRLeaseRevoke",
  "IRRLeaseCheckpoint",
] as const;

export type EntryType = (typeof entryTypes)[number];

/** The fields of InternalRaftRequest behind the names that start with IRR. */
const requestFields: Partial<Record<EntryType, number>> = {
  IRRRange: 3,
  IRRPut: 4,
  IRRDeleteRange: 5,
  IRRTxn: 6,
  IRRCompaction: 7,
  IRRLeaseGrant: 8,
  IRRLeaseRevoke: 9,
  IRRLeaseCheckpoint: 11,
};

const { EntryConfChange: CONF_CHANGE, EntryNormal: NORMAL } = raftpb.EntryType;

/** An entry with its decoded data; text is undefined if it is no request of etcd 3. */
interface Decoded {
  readonly type: number;
  readonly text: string | undefined;
  readonly fields: ReadonlySet<number>;
}

function decode({ type, data }: raftpb.Entry, maxBytes: number): Decoded {
  if (type !== NORMAL) return { type, text: undefined, fields: new Set() };
  try {
    return {
      type,
      text: protoText("etcdserverpb.InternalRaftRequest", data, maxBytes),
      fields: new Set([...wireFields(data)].map((one) => one.number)),
    };
  } catch (error) {
    if (error instanceof WireError) return { type, text: undefined, fields: new Set() };
    throw error;
  }
}

/**
 * The columns type and data of an entry; undefined if no wanted type matches it.
 * @param maxBytes of each key or value
 */
export function shownEntry(
  entry: raftpb.Entry,
  kinds: readonly EntryType[],
  maxBytes: number,
): string | undefined {
  const decoded = decode(entry, maxBytes);
  const kind = kinds.find((one) => matches(decoded, one));
  if (kind === undefined) return undefined;
  if (decoded.type === CONF_CHANGE) return `conf\t${confChange(entry.data)}`;
  return `norm\t${decoded.text ?? "v2 request"}`;
}

function matches({ type, text, fields }: Decoded, kind: EntryType): boolean {
  if (kind === "ConfigChange") return type === CONF_CHANGE;
  if (type !== NORMAL) return false;
  if (kind === "Normal") return true;
  if (kind === "Request") return text === undefined;
  const field = requestFields[kind];
  return text !== undefined && (field === undefined || fields.has(field));
}

function confChange(data: Uint8Array): string {
  try {
    const { type, nodeId } = raftpb.ConfChange.decode(data);
    return `method=${confChangeNames[type] ?? type} id=${idToHex(nodeId)}`;
  } catch {
    return "???";
  }
}

const confChangeNames = Object.fromEntries(
  Object.entries(raftpb.ConfChangeType).map(([name, type]) => [type, name]),
);
