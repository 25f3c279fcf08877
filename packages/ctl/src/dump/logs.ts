/** quorateutl dump-logs: the entries of a member's log, in the format of etcd-dump-logs. */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { badArguments, Exit, ExitCode, type Invocation, LineReader } from "@quorate/cli";
import type { Disk } from "@quorate/host";
import { nodeDisk } from "@quorate/host/node";
import { defined, idToHex, raftpb, walpb } from "@quorate/proto";
import { parseSnapshotName, RecordType, readWal, type WalRecord } from "@quorate/wal";
import { directoryArgument, logDirectory, reportingErrors } from "../files/data-dir.ts";
import { type EntryType, entryTypes, shownEntry } from "./entry-types.ts";
import { decoding, type LogContent, logIds, newestMark, readLog } from "./log-entries.ts";
import { LineOutput } from "./output.ts";
import { leftOut, NAMED } from "./proto-text.ts";

const DEFAULT_TYPES = "Normal,ConfigChange";

/** Throws Exit. */
export function runDumpLogs(invocation: Invocation): Promise<void> {
  return reportingErrors(async () => {
    const { flags, io } = invocation;
    const given = flags.string("wal-dir");
    const dir =
      given === ""
        ? logDirectory(directoryArgument(invocation.args, "dump-logs"))
        : directoryArgument([given], "--wal-dir");
    const out = new LineOutput(io);
    try {
      if (flags.bool("raw")) dumpRaw(invocation, dir, out);
      else await dumpEntries(invocation, dir, out);
    } finally {
      out.flush();
    }
  });
}

/** The value of --max-value-bytes. Throws Exit. */
function maxValueBytes({ flags }: Invocation): number {
  const maxBytes = flags.int("max-value-bytes");
  if (maxBytes < 0)
    throw badArguments(`--max-value-bytes must not be negative, and is ${maxBytes}`);
  return maxBytes === 0 ? Number.POSITIVE_INFINITY : maxBytes;
}

function dumpRaw(invocation: Invocation, dir: string, out: LineOutput): void {
  const { flags } = invocation;
  const maxBytes = maxValueBytes(invocation);
  if (flags.string("entry-type") !== DEFAULT_TYPES || flags.string("stream-decoder") !== "") {
    throw badArguments("--entry-type and --stream-decoder are not supported with --raw");
  }
  for (const line of rawLines(nodeDisk, dir, flags.int("start-index"), maxBytes)) out.write(line);
}

async function dumpEntries(invocation: Invocation, dir: string, out: LineOutput): Promise<void> {
  const { flags, io } = invocation;
  const typeText = flags.string("entry-type");
  const kinds = kindsOf(typeText, (warning) => io.stderr(warning));
  const { metadata, state, entries, damage } = contentFrom(invocation, dir, out);
  const { node, cluster } = logIds(metadata, idToHex);
  out.write(`WAL metadata:\nnodeID=${node} clusterID=${cluster} `);
  out.write(`term=${state.term} commitIndex=${state.commit} vote=${idToHex(state.vote)}\n`);
  const endIndex = flags.int("end-index");
  const maxBytes = maxValueBytes(invocation);
  const wanted = endIndex === 0 ? entries : entries.filter(({ index }) => index < endIndex);
  out.write(`WAL entries: ${wanted.length}\n`);
  if (wanted.length > 0)
    out.write(`lastIndex=${defined(wanted.at(-1), "an element of wanted").index}\n`);
  const command = flags.string("stream-decoder");
  out.write(
    `term\t     index\ttype\tdata${command === "" ? "" : "\tdecoder_status\tdecoded_data"}\n`,
  );
  const decoder = command === "" ? undefined : new StreamDecoder(command);
  let count = 0;
  try {
    for (const entry of wanted) {
      const shown = shownEntry(entry, kinds, maxBytes);
      if (shown === undefined) continue;
      count++;
      out.write(`${String(entry.term).padStart(4)}\t${String(entry.index).padStart(10)}\t${shown}`);
      out.write(decoder === undefined ? "\n" : `\t${await decoder.decode(entry.data)}\n`);
    }
    const said = (await decoder?.close()) ?? "";
    if (said !== "") io.stderr(`decoder stderr: ${said}`);
  } finally {
    decoder?.kill();
  }
  out.write(`\nEntry types (${typeText}) count is : ${count}\n`);
  // The readable entries were printed above.
  if (damage !== undefined) throw damage;
}

/** The types of --entry-type; warns about unknown ones. */
function kindsOf(text: string, warn: (warning: string) => void): EntryType[] {
  const kinds: EntryType[] = [];
  for (const name of text === "" ? [] : text.split(",")) {
    const kind = entryTypes.find((one) => one === name);
    if (kind !== undefined) kinds.push(kind);
    else
      warn(
        `[${name}] is not a valid entry-type, ignored.\nPlease set entry-type to one or more of the following:\n${entryTypes.join(", ")}\n`,
      );
  }
  return kinds;
}

/** Reads from the start that the flags select, and prints that start. */
function contentFrom({ flags }: Invocation, dir: string, out: LineOutput): LogContent {
  if (flags.isSet("start-index") && flags.isSet("start-snap")) {
    throw badArguments("--start-index and --start-snap cannot be set at the same time, choose one");
  }
  if (flags.isSet("start-index")) {
    const startIndex = flags.int("start-index");
    if (startIndex < 0)
      throw badArguments(`--start-index must not be negative, and is ${startIndex}`);
    out.write(`Start dumping log entries from index ${startIndex}.\n`);
    return readLog(nodeDisk, dir, Math.max(0, startIndex - 1));
  }
  const from = flags.isSet("start-snap")
    ? namedSnapshot(flags.string("start-snap"))
    : newestMark(nodeDisk, dir);
  const isEmpty = from === undefined || (from.index === 0 && from.term === 0);
  out.write(isEmpty ? "Snapshot:\nempty\n" : `Snapshot:\nterm=${from.term} index=${from.index}\n`);
  out.write("Start dumping log entries from snapshot.\n");
  return readLog(nodeDisk, dir, from?.index ?? 0);
}

function namedSnapshot(name: string): { term: number; index: number } {
  const found = parseSnapshotName(name.endsWith(".snap") ? name : `${name}.snap`);
  if (found === undefined) {
    throw badArguments(
      `--start-snap is the name of a file in member/snap, such as 0000000000000002-0000000000002711.snap, and is ${JSON.stringify(name)}`,
    );
  }
  return found;
}

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

/**
 * Runs a user's program that decodes entries: it reads each as a line in hexadecimal and prints a
 * line "status|decoded data".
 *
 *     quorateutl dump-logs --stream-decoder "my-decoder --with flags" DIR
 */
class StreamDecoder {
  readonly #command: string;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: LineReader;
  readonly #ended: Promise<number>;
  #stderr = "";
  #failure: Error | undefined;

  /** Starts the program; single spaces separate the words of `command`. */
  constructor(command: string) {
    this.#command = command;
    const [program = "", ...args] = command.split(" ");
    this.#child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.on("error", (error) => {
      this.#failure = error;
    });
    // A program that ends early is detected by its missing line.
    this.#child.stdin.on("error", () => {});
    this.#child.stderr.on("data", (piece: Buffer) => {
      this.#stderr += piece.toString();
    });
    this.#lines = new LineReader(this.#child.stdout);
    this.#ended = once(this.#child, "close").then(
      ([code]) => (code as number | null) ?? -1,
      () => -1,
    );
  }

  /** "status\tdata" of an entry. Throws Exit if the program prints no line. */
  async decode(data: Uint8Array): Promise<string> {
    this.#child.stdin.write(`${Buffer.from(data).toString("hex")}\n`);
    const line = await this.#lines.next();
    if (line === undefined) {
      const code = await this.#ended;
      const why =
        this.#failure?.message ??
        `it ended with code ${code}${this.#stderr === "" ? "" : ` and said: ${this.#stderr.trim()}`}`;
      throw new Exit(
        ExitCode.error,
        `the decoder ${JSON.stringify(this.#command)} printed no line for an entry: ${why}`,
      );
    }
    const [status, ...rest] = line.split("|");
    if (rest.length === 0)
      return `decoder output format is not right, print output anyway\t${line}`;
    if (rest.length === 1) return `${status}\t${rest[0]}`;
    return `${status}(*WARNING: data might contain deliminator used by etcd-dump-logs)\t${rest.join("")}`;
  }

  /** Ends the program; returns its standard error. Throws Exit if it failed. */
  async close(): Promise<string> {
    this.#child.stdin.end();
    const code = await this.#ended;
    if (code !== 0)
      throw new Exit(
        ExitCode.error,
        `the decoder ${JSON.stringify(this.#command)} ended with code ${code}: ${this.#stderr.trim()}`,
      );
    return this.#stderr;
  }

  /** Kills the program, if it still runs. */
  kill(): void {
    this.#child.kill();
  }
}
