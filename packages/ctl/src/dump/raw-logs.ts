/** Every record of a log in its order, one per line. */
import type { Disk } from "@quorate/host";
import { raftpb, walpb } from "@quorate/proto";
import { RecordType, readWal, type WalRecord } from "@quorate/wal";
import { decoding, logIds } from "./log-entries.ts";
import { leftOut } from "./proto-text.ts";

const { EntryNormal: NORMAL } = raftpb.EntryType;
const typeNames = Object.fromEntries(
  Object.entries(raftpb.EntryType).map(([name, type]) => [type, name]),
);

/**
 * The lines, line ends included, without entries, hard states and snapshot records below
 * `fromIndex`. Of data beyond `maxBytes` the beginning is shown. Throws WalDamageError after the last intact record.
 */
export function* rawLines(
  disk: Disk,
  dir: string,
  fromIndex: number,
  maxBytes: number,
): Generator<string> {
  for (const record of readWal(disk, dir)) {
    const line = decoding(dir, record, () => lineOf(record, fromIndex, maxBytes));
    if (line !== undefined) yield `${line}\n`;
  }
  yield "EOF: All entries were processed.\n";
}

function lineOf(
  { type, data, crc }: WalRecord,
  fromIndex: number,
  maxBytes: number,
): string | undefined {
  switch (type) {
    case RecordType.Metadata: {
      const { node, cluster } = logIds(data, String);
      return `Metadata: NodeID:${node} ClusterID:${cluster}`;
    }
    case RecordType.Crc:
      return `CRC: ${crc}`;
    case RecordType.Entry: {
      const entry = raftpb.Entry.decode(data);
      if (entry.index < fromIndex) return undefined;
      const kind = entry.type === NORMAL ? "" : ` Type:${typeNames[entry.type] ?? entry.type}`;
      return `Entry: Term:${entry.term} Index:${entry.index}${kind}${dataOf(entry.data, maxBytes)}`;
    }
    case RecordType.Snapshot: {
      const { index, term } = walpb.Snapshot.decode(data);
      return index < fromIndex ? undefined : `Snapshot: index:${index} term:${term}`;
    }
    case RecordType.State: {
      const { term, vote, commit } = raftpb.HardState.decode(data);
      return commit < fromIndex
        ? undefined
        : `HardState: term:${term} vote:${vote} commit:${commit}`;
    }
  }
}

const NAMED: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  '"': '\\"',
  "\\": "\\\\",
};

/** Bytes as etcd-dump-logs writes them: unprintable ones in octal. */
function octal(bytes: Uint8Array): string {
  let out = "";
  for (const byte of bytes) {
    const char = String.fromCharCode(byte);
    out +=
      NAMED[char] ?? (byte >= 32 && byte < 127 ? char : `\\${byte.toString(8).padStart(3, "0")}`);
  }
  return out;
}

/** The field Data of an entry: its first bytes, and how many are left out. */
function dataOf(data: Uint8Array, maxBytes: number): string {
  if (data.length === 0) return "";
  const rest = data.length > maxBytes ? leftOut(data.length, maxBytes) : "";
  return ` Data:"${octal(data.subarray(0, maxBytes))}"${rest} `;
}
